//===- TextWriter.h - pieces shared by the printers of the IR --*- C++ -*-===//
#ifndef STAGE_LIB_IR_TEXTWRITER_H
#define STAGE_LIB_IR_TEXTWRITER_H

#include "stage/IR/text/Text.h"

namespace stage {

/// Prints text between double quotes; quotes, backslashes and what is not printable ASCII are escaped.
void printQuoted(llvm::raw_ostream &os, llvm::StringRef text);
/// Prints a name bare where it is an identifier, else quoted.
void printName(llvm::raw_ostream &os, llvm::StringRef name);
/// True for what the lexer reads as one identifier.
bool isIdentifier(llvm::StringRef text);

/// True for the names of op kinds, which an operator of that name gives way to.
bool isOpKeyword(llvm::StringRef text);

/// Prints an extent: the name of its dim, else its size.
void print(llvm::raw_ostream &os, const Graph &graph, const Extent &extent);

/// Prints the blocks that are not empty.
void printBlocks(llvm::raw_ostream &os, const Graph &graph);

/// Prints ` in "scope" stage 2`, what is printed last of an op.
void printPlace(llvm::raw_ostream &os, const Op &op);

} // namespace stage

#endif // STAGE_LIB_IR_TEXTWRITER_H
