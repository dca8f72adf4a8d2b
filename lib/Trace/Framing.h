//===- Framing.h - messages as they stand in a file ------------*- C++ -*-===//
#ifndef STAGE_LIB_TRACE_FRAMING_H
#define STAGE_LIB_TRACE_FRAMING_H

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/message_lite.h>
#include <string>

namespace stage::trace {

/// Appends a message, its length as a varint before it. Fields of newer schemas are kept.
inline void appendFramed(const google::protobuf::MessageLite &message, std::string &bytes) {
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  coded.WriteVarint32(uint32_t(message.ByteSizeLong()));
  message.SerializeToCodedStream(&coded);
}

} // namespace stage::trace

#endif // STAGE_LIB_TRACE_FRAMING_H
