//===- TextWriter.cpp - traces as text ------------------------------------===//
#include "Attributes.h"
#include "stage/Trace/Diagnostics.h"
#include "stage/Trace/TextForm.h"
#include "stage/Trace/TraceFolder.h"
#include "stage/Trace/TraceReader.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <cstring>
#include <limits>

using namespace stage;
using namespace stage::trace;
using ChakraProtoMsg::AttributeProto;
using llvm::raw_ostream;
using llvm::StringRef;

static void printQuoted(StringRef text, raw_ostream &out) {
  out << '"';
  llvm::printEscapedString(text, out);
  out << '"';
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

static void printValue(const std::string &value, raw_ostream &out) { printQuoted(value, out); }
static void printValue(bool value, raw_ostream &out) { out << (value ? "true" : "false"); }
/// A number that is none is its bits in hexadecimal: they may say more than decimal text can.
template <typename Bits, typename Float> static void printFloat(Float value, raw_ostream &out) {
  Bits bits;
  std::memcpy(&bits, &value, sizeof(bits));
  if (std::isnan(value))
    out << llvm::format_hex(bits, 2 + 2 * sizeof(bits));
  else
    out << llvm::format("%.*g", std::numeric_limits<Float>::max_digits10, double(value));
}
static void printValue(double value, raw_ostream &out) { printFloat<uint64_t>(value, out); }
static void printValue(float value, raw_ostream &out) { printFloat<uint32_t>(value, out); }
template <typename Integer> static void printValue(Integer value, raw_ostream &out) { out << value; }

template <typename List> static void printList(const List &list, raw_ostream &out) {
  llvm::ListSeparator comma;
  out << '[';
  for (const auto &value : list) {
    out << comma;
    printValue(value, out);
  }
  out << ']';
}

static void printAttributeValue(const AttributeProto &attribute, raw_ostream &out) {
  switch (attribute.value_case()) {
#define KIND(name, Name, type)                                                                                         \
  case AttributeProto::k##Name##Val:                                                                                   \
    return printValue(type(attribute.name##_val()), out);                                                              \
  case AttributeProto::k##Name##List:                                                                                  \
    return printList(attribute.name##_list().values(), out);
    STAGE_FOR_EACH_VALUE_KIND(KIND)
#undef KIND
  case AttributeProto::VALUE_NOT_SET:
    return;
  }
}

/// Whether the name can stand without quotes and does not look like a field of the node.
static bool isPlainName(StringRef name) {
  if (name.empty() || llvm::isDigit(name[0]))
    return false;
  for (StringRef field : {"ctrl", "data", "start", "duration", "io_inputs", "io_outputs", "version", "doc"})
    if (name == field)
      return false;
  return llvm::all_of(name, [](char c) { return llvm::isAlnum(c) || c == '_'; });
}

/// `expected`: the kind that goes without saying.
static void printAttribute(const AttributeProto &attribute, std::optional<ValueCase> expected, raw_ostream &out) {
  out << ' ';
  if (isPlainName(attribute.name()))
    out << attribute.name();
  else
    printQuoted(attribute.name(), out);
  ValueCase kind = attribute.value_case();
  if (expected != kind)
    out << ':' << getKindName(kind);
  if (kind != AttributeProto::VALUE_NOT_SET) {
    out << '=';
    if (attribute.name() == "comm_type" && kind == AttributeProto::kInt64Val &&
        !getCommTypeName(attribute.int64_val()).empty())
      out << getCommTypeName(attribute.int64_val());
    else
      printAttributeValue(attribute, out);
  }
  if (!attribute.doc_string().empty()) {
    out << " doc=";
    printQuoted(attribute.doc_string(), out);
  }
}

//===----------------------------------------------------------------------===//
// Nodes, files, folders
//===----------------------------------------------------------------------===//

static void printTensors(StringRef field, const ChakraProtoMsg::IOInfo &tensors, raw_ostream &out) {
  out << ' ' << field << "=[";
  printQuoted(tensors.values(), out);
  out << ", ";
  printQuoted(tensors.shapes(), out);
  out << ", ";
  printQuoted(tensors.types(), out);
  out << ']';
}

void stage::trace::printNode(const ChakraProtoMsg::Node &node, raw_ostream &out) {
  out << node.id() << ' ';
  StringRef type = getNodeTypeName(node.type());
  if (type.empty())
    out << int(node.type());
  else
    out << type;
  // Without a name, an attribute in quotes would be taken for it.
  if (!node.name().empty() || (node.attr_size() && !isPlainName(node.attr(0).name()))) {
    out << ' ';
    printQuoted(node.name(), out);
  }
  if (node.ctrl_deps_size()) {
    out << " ctrl=";
    printList(node.ctrl_deps(), out);
  }
  if (node.data_deps_size()) {
    out << " data=";
    printList(node.data_deps(), out);
  }
  if (node.start_time_micros())
    out << " start=" << node.start_time_micros();
  if (node.duration_micros())
    out << " duration=" << node.duration_micros();
  if (node.has_inputs())
    printTensors("io_inputs", node.inputs(), out);
  if (node.has_outputs())
    printTensors("io_outputs", node.outputs(), out);
  for (const AttributeProto &attribute : node.attr())
    printAttribute(attribute, getExpectedKind(attribute.name()), out);
}

/// Follows a collective by the members of its group.
static void printMembers(const ChakraProtoMsg::Node &node, const CommGroups &groups, raw_ostream &out) {
  if (node.type() != ChakraProtoMsg::COMM_COLL_NODE)
    return;
  std::optional<uint64_t> group = getGroup(node);
  out << "  // ";
  if (group == 0u) {
    out << "all ranks";
    return;
  }
  auto found = group ? groups.find(*group) : groups.end();
  if (found == groups.end()) {
    out << "unknown group";
    return;
  }
  llvm::ListSeparator comma;
  out << "ranks ";
  for (uint32_t rank : found->second)
    out << comma << rank;
}

static bool dumpFile(StringRef path, uint32_t rank, const CommGroups *groups, raw_ostream &out,
                     DiagnosticEngine &diags) {
  std::unique_ptr<TraceReader> reader = TraceReader::open(path, diags);
  ChakraProtoMsg::GlobalMetadata metadata;
  if (!reader || reader->readMetadata(metadata) != TraceReader::Status::Read)
    return false;
  out << "rank " << rank;
  if (!metadata.version().empty()) {
    out << " version=";
    printQuoted(metadata.version(), out);
  }
  for (const AttributeProto &attribute : metadata.attr())
    printAttribute(attribute, getExpectedMetadataKind(attribute.name()), out);
  out << '\n';
  ChakraProtoMsg::Node node;
  while (reader->readNode(node) == TraceReader::Status::Read) {
    printNode(node, out);
    if (groups)
      printMembers(node, *groups, out);
    out << '\n';
  }
  return !reader->hasFailed();
}

bool stage::trace::dumpTraces(StringRef path, const DumpOptions &options, raw_ostream &out, DiagnosticEngine &diags) {
  if (!llvm::sys::fs::is_directory(path)) {
    CommGroups none;
    uint32_t rank = getRankOfFileName(llvm::sys::path::filename(path)).value_or(0);
    return dumpFile(path, rank, options.expandGroups ? &none : nullptr, out, diags);
  }
  std::optional<TraceFolder> folder = TraceFolder::load(path, diags);
  if (!folder)
    return false;
  if (options.rank && !folder->files.count(*options.rank)) {
    diags.report(SMLoc(), diag::NoSuchRank) << path << int64_t(*options.rank);
    return false;
  }
  for (const auto &[number, members] : folder->groups) {
    out << "group " << number << " = ";
    printList(members, out);
    out << '\n';
  }
  bool good = true;
  for (const auto &[rank, file] : folder->files)
    if (!options.rank || *options.rank == rank)
      good &= dumpFile(file, rank, options.expandGroups ? &folder->groups : nullptr, out, diags);
  return good;
}
