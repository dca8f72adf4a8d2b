//===- Paths.h - names of values and of what they stand in -----*- C++ -*-===//
#ifndef STAGE_IR_GRAPH_PATHS_H
#define STAGE_IR_GRAPH_PATHS_H

#include "llvm/ADT/StringRef.h"
#include <string>

namespace stage {

/// Of a gradient's path, behind that of its value.
inline constexpr llvm::StringLiteral gradientSuffix = ".grad";

/// The last component of a path: "q" of "layers.attn.q", "q.grad" of "layers.attn.q.grad".
llvm::StringRef getLocalName(llvm::StringRef path);
/// The rest: "layers.attn"; empty if there is one component only.
llvm::StringRef getScope(llvm::StringRef path);
/// "layers.attn.q" of "layers.attn" and "q"; the name alone where the scope is empty.
std::string joinPath(llvm::StringRef scope, llvm::StringRef name);

} // namespace stage

#endif // STAGE_IR_GRAPH_PATHS_H
