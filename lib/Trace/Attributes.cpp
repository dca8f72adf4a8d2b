//===- Attributes.cpp - the attributes of a node --------------------------===//
#include "Attributes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace stage;
using namespace stage::trace;
using ChakraProtoMsg::AttributeProto;
using llvm::StringRef;

StringRef stage::trace::getKindName(ValueCase kind) {
  switch (kind) {
#define KIND(name, Name, type)                                                                                         \
  case AttributeProto::k##Name##Val:                                                                                   \
    return #name;                                                                                                      \
  case AttributeProto::k##Name##List:                                                                                  \
    return #name "_list";
    STAGE_FOR_EACH_VALUE_KIND(KIND)
#undef KIND
  case AttributeProto::VALUE_NOT_SET:
    break;
  }
  return "none";
}

std::optional<ValueCase> stage::trace::parseKindName(StringRef name) {
#define KIND(kind, Kind, type)                                                                                         \
  if (name == #kind)                                                                                                   \
    return AttributeProto::k##Kind##Val;                                                                               \
  if (name == #kind "_list")                                                                                           \
    return AttributeProto::k##Kind##List;
  STAGE_FOR_EACH_VALUE_KIND(KIND)
#undef KIND
  if (name == "none")
    return AttributeProto::VALUE_NOT_SET;
  return std::nullopt;
}

std::optional<ValueCase> stage::trace::getExpectedKind(StringRef name) {
  return llvm::StringSwitch<std::optional<ValueCase>>(name)
      .Case("is_cpu_op", AttributeProto::kBoolVal)
      .Cases("num_ops", "other_ops", "recomputed_ops", "comm_type", "comm_size", "issue_stream", "duration_picos",
             AttributeProto::kInt64Val)
      .Case("tensor_size", AttributeProto::kUint64Val)
      .Cases("comm_dst", "comm_src", "comm_tag", "unit", "level", AttributeProto::kInt32Val)
      .Cases("pg_name", "op_type", AttributeProto::kStringVal)
      .Case("involved_dim", AttributeProto::kBoolList)
      .Cases("inputs", "outputs", AttributeProto::kStringList)
      .Default(std::nullopt);
}

std::optional<ValueCase> stage::trace::getExpectedMetadataKind(StringRef name) {
  return llvm::StringSwitch<std::optional<ValueCase>>(name)
      .Cases("launch_picos", "step_host_picos", AttributeProto::kInt64Val)
      .Cases("machine", "runtime", "tax_collective", "tax_send", "tax_copy", "tax_communication",
             AttributeProto::kStringVal)
      .Default(std::nullopt);
}

static const StringRef nodeTypeNames[] = {"INVALID",   "METADATA",  "MEM_LOAD", "MEM_STORE", "COMP",      "COMM_SEND",
                                          "COMM_RECV", "COMM_COLL", "STORAGE",  "BATCH",     "CHECKPOINT"};
static const StringRef commTypeNames[] = {
    "ALL_REDUCE", "REDUCE",         "ALL_GATHER",           "GATHER", "SCATTER", "BROADCAST",
    "ALL_TO_ALL", "REDUCE_SCATTER", "REDUCE_SCATTER_BLOCK", "BARRIER"};

static StringRef getName(llvm::ArrayRef<StringRef> names, int64_t number) {
  return number >= 0 && number < int64_t(names.size()) ? names[number] : StringRef();
}
template <typename T> static std::optional<T> parseName(llvm::ArrayRef<StringRef> names, StringRef name) {
  const StringRef *found = llvm::find(names, name);
  return found == names.end() ? std::nullopt : std::optional<T>(found - names.begin());
}

StringRef stage::trace::getNodeTypeName(int type) { return getName(nodeTypeNames, type); }
std::optional<int> stage::trace::parseNodeTypeName(StringRef name) { return parseName<int>(nodeTypeNames, name); }
StringRef stage::trace::getCommTypeName(int64_t type) { return getName(commTypeNames, type); }
std::optional<int64_t> stage::trace::parseCommTypeName(StringRef name) {
  return parseName<int64_t>(commTypeNames, name);
}

const AttributeProto *stage::trace::findAttribute(const ChakraProtoMsg::Node &node, StringRef name) {
  for (const AttributeProto &attribute : node.attr())
    if (attribute.name() == name)
      return &attribute;
  return nullptr;
}

std::optional<int64_t> stage::trace::getInteger(const AttributeProto &attribute) {
  switch (attribute.value_case()) {
#define INTEGER(name, Name)                                                                                            \
  case AttributeProto::k##Name##Val:                                                                                   \
    return int64_t(attribute.name##_val());
    INTEGER(int32, Int32)
    INTEGER(int64, Int64)
    INTEGER(uint32, Uint32)
    INTEGER(uint64, Uint64)
    INTEGER(sint32, Sint32)
    INTEGER(sint64, Sint64)
    INTEGER(fixed32, Fixed32)
    INTEGER(fixed64, Fixed64)
    INTEGER(sfixed32, Sfixed32)
    INTEGER(sfixed64, Sfixed64)
#undef INTEGER
  default:
    return std::nullopt;
  }
}

std::optional<uint64_t> stage::trace::getGroup(const ChakraProtoMsg::Node &node) {
  const AttributeProto *attribute = findAttribute(node, "pg_name");
  if (!attribute || attribute->value_case() != AttributeProto::kStringVal || attribute->string_val().empty())
    return 0;
  uint64_t number;
  StringRef text = attribute->string_val();
  if (!llvm::all_of(text, llvm::isDigit) || text.getAsInteger(10, number))
    return std::nullopt;
  return number;
}
