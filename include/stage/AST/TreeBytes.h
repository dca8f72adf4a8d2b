//===- TreeBytes.h - a syntax tree as bytes --------------------*- C++ -*-===//
#ifndef STAGE_AST_TREEBYTES_H
#define STAGE_AST_TREEBYTES_H

#include "stage/AST/AST.h"

namespace stage::ast {

/// The tree of a file that was parsed from the buffer `text`, as bytes. They hold no address.
std::string writeTree(const File &file, StringRef text);

/// The same tree, with places in another buffer of the same text; its path and buffer are left to be set. Null if the
/// bytes are not those of a tree.
File *readTree(ASTContext &context, StringRef bytes, StringRef text);

} // namespace stage::ast

#endif // STAGE_AST_TREEBYTES_H
