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
// Algorithm: the files of the library are parsed, without their imports, and declarations printed from their syntax
// trees: doc comments, and of each parameter its kind, legal values and default as they are written.
//
// Limits: nothing is evaluated.
//
//===----------------------------------------------------------------------===//
#include "Commands.h"
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
    std::vector<sema::Candidate> names;
    for (const Source &source : isFile ? std::vector<Source>{{command.input, command.input}} : listLibrary()) {
      const ast::File *file = parse(source.path);
      if (!file)
        return false;
      for (const ast::Decl *decl : file->decls) {
        names.push_back({decl->name.name, SMLoc()});
        if (isFile || command.all || decl->name.name == command.input)
          print(*decl, source.name);
      }
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

  static StringRef getKeyword(const ast::Decl &decl) {
    switch (decl.kind) {
    case ast::NodeKind::OpDecl:
      return "op";
    case ast::NodeKind::ModuleDecl:
      return llvm::cast<ast::ModuleDecl>(&decl)->isModel ? "model" : "module";
    case ast::NodeKind::StrategyDecl:
      return "strategy";
    case ast::NodeKind::ScheduleDecl:
      return "schedule";
    case ast::NodeKind::ConfigDecl:
      return "config";
    case ast::NodeKind::JobDecl:
      return "job";
    case ast::NodeKind::PrecisionDecl:
      return "precision";
    case ast::NodeKind::OptimizerDecl:
      return "optimizer";
    default:
      return "fn";
    }
  }

  static llvm::ArrayRef<ast::Param> getParams(const ast::Decl &decl) {
    if (auto *op = llvm::dyn_cast<ast::OpDecl>(&decl))
      return op->params;
    if (auto *module = llvm::dyn_cast<ast::ModuleDecl>(&decl))
      return module->params;
    if (auto *strategy = llvm::dyn_cast<ast::StrategyDecl>(&decl))
      return strategy->params;
    if (auto *schedule = llvm::dyn_cast<ast::ScheduleDecl>(&decl))
      return schedule->params;
    if (auto *optimizer = llvm::dyn_cast<ast::OptimizerDecl>(&decl))
      return optimizer->params;
    if (auto *fn = llvm::dyn_cast<ast::FnDecl>(&decl))
      return fn->params;
    return {};
  }

  static std::string getText(SMRange range) { return std::string(range.Start.getPointer(), range.End.getPointer()); }

  /// `zero in [0, 1, 2, 3] = 0`, as it is written.
  static std::string describe(const ast::Param &param) {
    std::string text = param.name.name.str();
    if (param.tensor)
      text += ": " + getText(param.tensor->range);
    else if (param.scalarKind)
      text += (": " + param.scalarKind.name + (param.sizeIndex ? " " + param.sizeIndex.name.str() : "")).str();
    if (param.legal)
      text += " in " + ast::textOf(param.legal);
    if (param.defaultValue)
      text += " = " + ast::textOf(param.defaultValue);
    return text;
  }

  void print(const ast::Decl &decl, const std::string &from) {
    llvm::raw_ostream &os = llvm::outs();
    os << (isPrinted ? "\n" : "") << getKeyword(decl) << ' ' << decl.name.name << "  (" << from << ")\n";
    isPrinted = true;
    for (StringRef line : decl.doc)
      os << (line.empty() ? "" : "  ") << line << '\n';
    llvm::ArrayRef<ast::Param> params = getParams(decl);
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
    os << '\n';
    table.print(os, /*titles=*/false);
  }

  const DocCommand &command;
  DiagnosticEngine &diags;
  ast::ASTContext context;
  bool isPrinted = false;
};
} // namespace

bool stage::driver::runDoc(const DocCommand &command, DiagnosticEngine &diags) {
  return DocPrinter(command, diags).run();
}
