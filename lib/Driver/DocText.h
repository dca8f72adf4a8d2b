//===- DocText.h - what a declaration says of itself -----------*- C++ -*-===//
//
// The texts that `stagec doc` prints for people at a terminal, and writes as pages: both show the same.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_DRIVER_DOCTEXT_H
#define STAGE_LIB_DRIVER_DOCTEXT_H

#include "stage/AST/AST.h"
#include <string>
#include <vector>

namespace stage::driver {

/// A declaration, and the module that people import it from: `std.nn`, or a file.
struct DocEntry {
  const ast::Decl *decl;
  std::string module;
  bool isSeen = false; ///< By every file, without an import.
};

/// `op`, `model`, ...
llvm::StringRef getKeyword(const ast::Decl &decl);
/// `rms_norm(x, g) -> [..., d]`; only the name of what has no parameters.
std::string getSignature(const ast::Decl &decl);
/// `zero in [0, 1, 2, 3] = 0`, as it is written.
std::string describe(const ast::Param &param);
/// `zero if zero >= 1`, as it is written.
std::string describe(const ast::FlagStmt &flag);
/// What a file says of itself, without its name in front.
std::string getModuleText(const ast::File &file, llvm::StringRef module);
/// The text up to its first full stop, on one line.
std::string getFirstSentence(llvm::ArrayRef<llvm::StringRef> doc);
/// Whether a strategy is for calls of others: it has axes as parameters, or no mesh.
bool isPart(const ast::StrategyDecl &strategy);
/// Lines of a program that use a declaration; none of what is not used by name. `all`: the library, in which a model
/// finds its configs.
std::vector<std::string> getExample(const DocEntry &entry, llvm::ArrayRef<DocEntry> all);

/// `fuse class elementwise;`, without its comment.
std::string describeKernels(const ast::KernelStmt &kernels);

} // namespace stage::driver

#endif // STAGE_LIB_DRIVER_DOCTEXT_H
