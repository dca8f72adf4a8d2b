//===- Program.h - the files of a program and their names ------*- C++ -*-===//
//
// Loads a file and what it imports, each file once, and answers which declaration a
// name means in a file.
//
//   import std.nn (linear);     // <stdlib>/nn.stg
//   import blocks.attention;    // blocks/attention.stg beside the importing file, then in each -I folder
//
// A name means, in this order: the file's own declaration; an imported one (a name
// in an import's list before one of an import of everything); one that the standard
// library's prelude.stg imports, which every file sees; one of the libraries of the
// options. Imports do not pass on what they import themselves.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_SEMA_PROGRAM_H
#define STAGE_SEMA_PROGRAM_H

#include "stage/AST/AST.h"
#include "stage/Support/FileCache.h"
#include "stage/Symbolic/Grid.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include <memory>
#include <string>
#include <vector>

namespace stage::sema {

using llvm::ArrayRef;
using llvm::StringRef;

struct ProgramOptions {
  /// The folder of `std.*`. Empty: there is none.
  std::string stdlibDir;
  /// `-I`, in order.
  std::vector<std::string> includeDirs;
  /// Files of the library whose names every file sees where a name means nothing else, as `machines` for
  /// `-D machine=h100`.
  std::vector<std::string> libraries;
  /// Keeps the syntax trees of files from run to run.
  FileCache cache = FileCache();
};

/// A name that could have been meant, and where it is declared (invalid: nowhere, it is built in).
struct Candidate {
  StringRef name;
  SMLoc loc;
};

class KeptBindings;

class Program {
public:
  Program(ast::ASTContext &context, DiagnosticEngine &diags, ProgramOptions options);
  /// The files that another one has loaded, whose trees it shares: nobody changes them, so that several threads may
  /// read them. What is read from here on, such as values of `-D`, goes to a context and an engine of its own.
  Program(const Program &loaded, ast::ASTContext &context, DiagnosticEngine &diags);
  ~Program();

  /// Loads the file at `path` ("-": standard input) with all its imports. Null if it cannot be read or parsed; that,
  /// import cycles, unknown imported names and declarations of one name twice are reported.
  const ast::File *load(StringRef path);
  /// The same for text that is already a buffer of the engine's SourceMgr; `path` says where relative imports start.
  const ast::File *loadBuffer(unsigned bufferId, StringRef path);

  /// The file that was loaded first; null before.
  const ast::File *getMain() const { return main; }
  /// All files, each after those it imports.
  ArrayRef<const ast::File *> getFiles() const { return files; }

  /// What a name means in a file; null if nothing.
  const ast::Decl *lookup(const ast::File &from, StringRef name) const;
  /// The file that declares.
  const ast::File &getFile(const ast::Decl &decl) const;
  /// The standard library declares it.
  bool isOfLibrary(const ast::Decl &decl) const;
  /// Every declaration of that name in sight, where it is ambiguous: two imports of everything bring different ones.
  llvm::SmallVector<const ast::Decl *, 2> lookupAll(const ast::File &from, StringRef name) const;
  /// Whether a declaration lists the name among the legal values of a parameter. Where it means nothing else it is a
  /// word, as `fast` of `mode in [fast, exact]`.
  bool isLegalWord(StringRef name) const { return legalWords.contains(name); }
  /// All names that lookup() knows in a file, sorted.
  std::vector<Candidate> getVisibleNames(const ast::File &from) const;
  /// Whether a file of the standard library declares `name`, imported or not.
  bool isInLibrary(StringRef name) const;
  /// If a file of the standard library declares `name`, adds a note to `error` that says so. Whether one does. If
  /// `from` imports names of that file and not this one, `error` stands there.
  bool suggestImport(DiagnosticBuilder &error, StringRef name, const ast::File *from = nullptr) const;
  /// Adds to `error` the nearest name of a declaration of this kind (`strategy`) that the library has or `from` sees;
  /// if none is near, all of them, where they are few.
  void suggestOfKind(DiagnosticBuilder &error, StringRef name, SMRange at, StringRef kind, const ast::File &from) const;

  /// Values of `-D` that were read before without a fault, by name and text (`tp=4`): plan after plan has the same.
  llvm::StringMap<const ast::Expr *> &getDefines() { return defines; }
  /// Tables of machines that were read before without a fault, by form and file: plan after plan has the same.
  llvm::StringMap<std::shared_ptr<const Grid>> &getTables() const { return tables; }
  /// What was bound before without a fault, and is the same for plan after plan (stage/Sema/KeptBindings.h).
  KeptBindings &getBindings() const { return *bindings; }

  ast::ASTContext &getContext() const { return context; }
  DiagnosticEngine &getDiags() const { return diags; }

private:
  struct Scope;
  const ast::File *parse(unsigned bufferId);
  const ast::File *loadPath(const std::string &path, SMRange importedAt);
  const ast::File *loadImport(const ast::File &from, const ast::Import &import);
  void reportCycle(const std::string &key, SMRange importedAt);
  void declare(const ast::File &file, Scope &scope);
  void declareImport(const ast::Import &import, const ast::File &imported, Scope &scope);
  void loadPreludes();
  llvm::SmallVector<const ast::Decl *, 2> lookupInFile(const ast::File &from, StringRef name) const;
  void indexLibrary() const;

  ast::ASTContext &context;
  DiagnosticEngine &diags;
  ProgramOptions options;
  const ast::File *main = nullptr;
  std::vector<const ast::File *> preludes; ///< What every file sees: the prelude, and `libraries`.
  std::vector<const ast::File *> files;
  /// By name the file of the standard library that declares it (`std.nn`); read when it is first asked for.
  struct LibraryPlace {
    std::string file;
    StringRef kind; ///< `strategy`
  };
  mutable llvm::StringMap<LibraryPlace> library;
  mutable bool libraryIsRead = false;
  llvm::StringMap<const ast::File *> byPath; ///< By real path; null where a file could not be read.
  struct Loading {
    std::string key; ///< Real path.
    std::string path;
    SMRange importedAt;
  };
  std::vector<Loading> loading; ///< The chain of imports that is being followed.
  llvm::DenseMap<const ast::File *, std::shared_ptr<const Scope>> scopes;
  llvm::DenseMap<const ast::Decl *, const ast::File *> fileOf;
  llvm::StringMap<const ast::Expr *> defines;
  mutable llvm::StringMap<std::shared_ptr<const Grid>> tables;
  std::unique_ptr<KeptBindings> bindings;
  llvm::StringSet<> legalWords;
};

/// The candidate nearest to `name` by edit distance; null if none is near enough to be meant.
const Candidate *findNearest(StringRef name, ArrayRef<Candidate> candidates);
/// What is written here in place of a function or word of other languages; empty: no such word.
StringRef findNameInstead(StringRef name);
/// Adds a fix-it that replaces `at` and a note, if there is a nearest candidate. Later text of `error` goes to the
/// note.
void suggestNearest(DiagnosticBuilder &error, StringRef name, SMRange at, ArrayRef<Candidate> candidates);

/// Checks the names in all declarations of all files, and the rules of declarations that need no values (R10 of
/// docs/language). All faults are reported. True if there are none.
bool checkNames(const Program &program);

} // namespace stage::sema

#endif // STAGE_SEMA_PROGRAM_H
