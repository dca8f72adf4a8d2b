//===- Printer.cpp - the syntax tree as .stg text -------------------------===//
#include "stage/AST/AST.h"
#include "llvm/Support/raw_ostream.h"

using namespace stage;

void ast::print(llvm::raw_ostream &os, const File &file) {
  for (const Decl *decl : file.decls)
    os << decl->name.name << "\n";
}
