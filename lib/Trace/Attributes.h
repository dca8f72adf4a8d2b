//===- Attributes.h - the attributes of a node -----------------*- C++ -*-===//
//
// What consumers expect of attributes: their names and the kind of their values. One
// table serves the verifier, the statistics and the text form.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_TRACE_ATTRIBUTES_H
#define STAGE_LIB_TRACE_ATTRIBUTES_H

#include "et_def.pb.h"
#include "llvm/ADT/StringRef.h"
#include <optional>

namespace stage::trace {

using ValueCase = ChakraProtoMsg::AttributeProto::ValueCase;

/// The kinds of values: name in the schema, name in the generated code, C++ type.
#define STAGE_FOR_EACH_VALUE_KIND(KIND)                                                                                \
  KIND(double, Double, double)                                                                                         \
  KIND(float, Float, float)                                                                                            \
  KIND(int32, Int32, int32_t)                                                                                          \
  KIND(int64, Int64, int64_t)                                                                                          \
  KIND(uint32, Uint32, uint32_t)                                                                                       \
  KIND(uint64, Uint64, uint64_t)                                                                                       \
  KIND(sint32, Sint32, int32_t)                                                                                        \
  KIND(sint64, Sint64, int64_t)                                                                                        \
  KIND(fixed32, Fixed32, uint32_t)                                                                                     \
  KIND(fixed64, Fixed64, uint64_t)                                                                                     \
  KIND(sfixed32, Sfixed32, int32_t)                                                                                    \
  KIND(sfixed64, Sfixed64, int64_t)                                                                                    \
  KIND(bool, Bool, bool)                                                                                               \
  KIND(string, String, std::string)                                                                                    \
  KIND(bytes, Bytes, std::string)

/// `int64`, `bool_list`, ...; `none` for an attribute without a value.
llvm::StringRef getKindName(ValueCase kind);
std::optional<ValueCase> parseKindName(llvm::StringRef name);

/// The kind that consumers expect of the attribute, if they know it.
std::optional<ValueCase> getExpectedKind(llvm::StringRef attributeName);
/// The same of an attribute of the global metadata.
std::optional<ValueCase> getExpectedMetadataKind(llvm::StringRef attributeName);

/// `COMP`, `COMM_COLL`, ...; empty for an unknown number.
llvm::StringRef getNodeTypeName(int type);
std::optional<int> parseNodeTypeName(llvm::StringRef name);

/// `ALL_REDUCE`, ...; empty for an unknown number.
llvm::StringRef getCommTypeName(int64_t type);
std::optional<int64_t> parseCommTypeName(llvm::StringRef name);

/// The first attribute of that name, or null.
const ChakraProtoMsg::AttributeProto *findAttribute(const ChakraProtoMsg::Node &node, llvm::StringRef name);

/// The number an attribute holds, of whatever integer kind; nothing if it holds none.
std::optional<int64_t> getInteger(const ChakraProtoMsg::AttributeProto &attribute);

/// The process group of a collective: `pg_name`, and 0, which means all ranks, where it is absent, "" or "0".
/// Nothing if it is not a number.
std::optional<uint64_t> getGroup(const ChakraProtoMsg::Node &node);

} // namespace stage::trace

#endif // STAGE_LIB_TRACE_ATTRIBUTES_H
