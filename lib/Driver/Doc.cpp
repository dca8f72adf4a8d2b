//===- Doc.cpp - what the library says of itself --------------------------===//
//
// Problem: the declaration of a parameter has its meaning, its legal values and its default. People ask for these by
// the name of a strategy or model, instead of searching for the file.
//
//   stagec doc data_parallel
//
//   strategy data_parallel                                   std.parallel
//     Copies of the model, each with other sequences ...
//
//     dp                           Ranks with copies.
//     bucket: bytes = none         Bytes of one reduction.
//
//     megatron_lm  (std.launchers)
//       --tensor-model-parallel-size  tp
//
// Algorithm: the files of the library are parsed, without their imports, and declarations printed from their syntax
// trees: doc comments, and of each parameter its kind, legal values and default as they are written. A strategy is
// followed by the launchers of the same files that are for it, each a table of flags and what they say.
//
// Limits: nothing is evaluated. Launchers are found by the name of their strategy.
//
//===----------------------------------------------------------------------===//
#include "Commands.h"
#include "DocPages.h"
#include "DocText.h"
#include "stage/Driver/Diagnostics.h"
#include "stage/Parse/Parse.h"
#include "stage/Sema/Program.h"
#include "stage/Support/Files.h"
#include "stage/Support/Table.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace stage;
using namespace stage::driver;
using llvm::StringRef;
namespace path = llvm::sys::path;

namespace {
/// A file and what people import it by.
struct Source {
  std::string path, name;
};

class DocPrinter {
public:
  DocPrinter(const DocCommand &command, DiagnosticEngine &diags) : command(command), diags(diags) {}

  /// False after errors.
  bool run() {
    bool isFile = StringRef(command.input).endswith(".stg");
    std::vector<DocModule> modules;
    for (const Source &source : isFile ? std::vector<Source>{{command.input, command.input}} : listLibrary()) {
      const ast::File *file = parse(source.path);
      if (!file)
        return false;
      modules.push_back({source.name, file});
      for (const ast::Decl *decl : file->decls)
        entries.push_back({decl, source.name});
    }
    for (const DocModule &module : modules) {
      if (module.name != "std.prelude")
        continue;
      for (const ast::Import &import : module.file->imports)
        for (DocEntry &entry : entries)
          entry.isSeen |= entry.module == import.path;
    }
    if (!command.markdown.empty())
      return writePages(command, makePages(modules, entries), diags);
    if (!command.site.empty())
      return writeSite(command, makePages(modules, entries), diags);
    std::vector<sema::Candidate> names;
    for (const DocModule &module : modules) {
      names.push_back({module.name, SMLoc()});
      if (!isFile && module.name == command.input)
        printModule(module);
    }
    for (const DocEntry &entry : entries) {
      names.push_back({entry.decl->name.name, SMLoc()});
      if (isFile || command.all || entry.decl->name.name == command.input)
        print(entry);
    }
    if (isPrinted)
      return true;
    DiagnosticBuilder error = diags.report(SMLoc(), diag::NotInLibrary) << command.input;
    if (const sema::Candidate *nearest = sema::findNearest(command.input, names))
      error.note(SMLoc(), diag::NearestInLibrary) << nearest->name;
    return false;
  }

private:
  std::vector<Source> listLibrary() {
    std::vector<Source> sources;
    std::error_code error;
    for (llvm::sys::fs::directory_iterator it(command.stdlibDir, error), end; !error && it != end; it.increment(error))
      if (StringRef(it->path()).endswith(".stg"))
        sources.push_back({it->path(), "std." + path::stem(it->path()).str()});
    llvm::sort(sources, [](const Source &a, const Source &b) { return a.name < b.name; });
    return sources;
  }

  const ast::File *parse(const std::string &file) {
    auto buffer = readFile(file, diags);
    return buffer ? parseFile(context, diags, diags.getSources().AddNewSourceBuffer(std::move(buffer), SMLoc()),
                              command.cache)
                  : nullptr;
  }

  /// A line for each declaration.
  void printModule(const DocModule &module) {
    llvm::raw_ostream &os = llvm::outs();
    os << module.name << '\n';
    for (StringRef line : module.file->doc)
      os << (line.empty() ? "" : "  ") << line << '\n';
    Table table({{"declaration", Table::Left}, {"", Table::Left}}, 2);
    for (const ast::Decl *decl : module.file->decls)
      table.addText({(getKeyword(*decl) + " " + decl->name.name).str(), getFirstSentence(decl->doc)});
    os << '\n';
    table.print(os, /*titles=*/false);
    isPrinted = true;
  }

  void print(const DocEntry &entry) {
    const ast::Decl &decl = *entry.decl;
    llvm::raw_ostream &os = llvm::outs();
    os << (isPrinted ? "\n" : "") << getKeyword(decl) << ' ' << getSignature(decl) << "  (" << entry.module << ", line "
       << diags.getSources().getLineAndColumn(decl.name.loc()).first << ")\n";
    isPrinted = true;
    for (StringRef line : decl.doc)
      os << (line.empty() ? "" : "  ") << line << '\n';
    if (auto *machine = llvm::dyn_cast<ast::MachineDecl>(&decl))
      printEntries(machine->base, machine->body);
    if (auto *runtime = llvm::dyn_cast<ast::RuntimeDecl>(&decl))
      printEntries(runtime->base, runtime->body);
    if (auto *launcher = llvm::dyn_cast<ast::LauncherDecl>(&decl); launcher && !launcher->flags.empty()) {
      os << '\n';
      printFlags(*launcher, 2);
    }
    llvm::ArrayRef<ast::Param> params = ast::getParams(decl);
    auto isOwn = [](const ast::Param &param) { return !param.isForwarded; };
    printParams(params.take_while(isOwn));
    if (!params.drop_while(isOwn).empty())
      os << "\n  Forwarded to parts, for older programs (new ones write `with`):\n";
    printParams(params.drop_while(isOwn));
    std::vector<std::string> example = getExample(entry, entries);
    os << (example.empty() ? "" : "\n");
    for (const std::string &line : example)
      os << "    " << line << '\n';
    for (const DocEntry &other : entries)
      if (auto *launcher = llvm::dyn_cast<ast::LauncherDecl>(other.decl);
          launcher && llvm::isa<ast::StrategyDecl>(&decl) && launcher->strategy.name == decl.name.name) {
        os << "\n  " << launcher->name.name << "  (" << other.module << ")\n";
        printFlags(*launcher, 4);
      }
  }

  void printParams(llvm::ArrayRef<ast::Param> params) {
    if (params.empty())
      return;
    Table table({{"parameter", Table::Left}, {"", Table::Left}}, 2);
    for (const ast::Param &param : params) {
      std::string name = describe(param);
      for (StringRef line : param.doc)
        table.addText({std::exchange(name, ""), line.str()});
      if (param.doc.empty())
        table.addRow({name});
    }
    llvm::outs() << '\n';
    table.print(llvm::outs(), /*titles=*/false);
  }

  /// A list of ignored flags may be long, and is broken into lines.
  static void printFlags(const ast::LauncherDecl &launcher, unsigned indent) {
    size_t width = 40;
    for (const ast::FlagStmt *flag : launcher.flags)
      for (const ast::StringExpr *name : flag->flags)
        width = std::max(width, name->text.size());
    Table table({{"flag", Table::Left}, {"", Table::Left}, {"", Table::Left}}, indent);
    for (const ast::FlagStmt *flag : launcher.flags) {
      std::string names, says = describe(*flag);
      llvm::ArrayRef<StringRef> doc = flag->doc;
      auto flush = [&] {
        table.addText({std::exchange(names, ""), std::exchange(says, ""), doc.empty() ? "" : doc.front().str()});
        doc = doc.drop_front(!doc.empty());
      };
      for (const ast::StringExpr *name : flag->flags) {
        bool isLast = name == flag->flags.back();
        if (!names.empty() && names.size() + name->text.size() + 2 > width)
          flush();
        names += (names.empty() ? "" : " ") + name->text.str() + (isLast ? "" : ",");
      }
      do
        flush();
      while (!doc.empty());
    }
    table.print(llvm::outs(), /*titles=*/false);
  }

  /// Of a machine or a runtime. Those of a level by the names that `-D` knows them by.
  void printEntries(const ast::Ident &base, llvm::ArrayRef<ast::Stmt *> body) {
    Table table({{"entry", Table::Left}, {"", Table::Left}}, 2);
    auto add = [&](std::string name, llvm::ArrayRef<StringRef> doc) {
      for (StringRef line : doc)
        table.addText({std::exchange(name, ""), line.str()});
      if (doc.empty())
        table.addRow({name});
    };
    auto addEntry = [&](const ast::EntryStmt &entry, const std::string &level) {
      add(level + entry.name.name.str() + " = " + ast::textOf(entry.value), entry.doc);
    };
    for (const ast::Stmt *stmt : body) {
      if (auto *entry = llvm::dyn_cast<ast::EntryStmt>(stmt)) {
        addEntry(*entry, "");
        continue;
      }
      if (auto *kernels = llvm::dyn_cast<ast::KernelStmt>(stmt)) {
        add(describeKernels(*kernels), kernels->doc);
        continue;
      }
      auto *level = llvm::cast<ast::LevelStmt>(stmt);
      add((level->base ? "level " + level->name.name + " extends " + level->base.name : "level " + level->name.name)
              .str(),
          level->doc);
      for (const ast::EntryStmt *entry : level->entries)
        addEntry(*entry, level->name.name.str() + ".");
    }
    llvm::outs() << '\n';
    if (base)
      llvm::outs() << "  all entries of " << base.name << ", and in place of them:\n";
    table.print(llvm::outs(), /*titles=*/false);
  }

  const DocCommand &command;
  DiagnosticEngine &diags;
  ast::ASTContext context;
  std::vector<DocEntry> entries; ///< Of all files that were read.
  bool isPrinted = false;
};
} // namespace

bool stage::driver::runDoc(const DocCommand &command, DiagnosticEngine &diags) {
  return DocPrinter(command, diags).run();
}
