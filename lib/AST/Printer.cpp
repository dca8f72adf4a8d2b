//===- Printer.cpp - files and declarations as text -----------------------===//
#include "Printer.h"

using namespace stage;
using namespace stage::ast;
using llvm::cast;

void Printer::file(const File &file) {
  for (StringRef text : file.doc)
    os << "//!" << (text.empty() ? "" : " ") << text << '\n';
  for (const Import &import : file.imports) {
    os << "import " << import.path;
    if (!import.all) {
      os << " (";
      names(import.names);
      os << ')';
    }
    os << ";\n";
  }
  bool first = file.doc.empty() && file.imports.empty();
  for (const Decl *item : file.decls) {
    os << (first ? "" : "\n");
    first = false;
    decl(item);
  }
}

void Printer::docs(ArrayRef<StringRef> lines) {
  for (StringRef text : lines)
    line() << "///" << (text.empty() ? "" : " ") << text << '\n';
}

void Printer::decl(const Decl *decl) {
  docs(decl->doc);
  StringRef name = decl->name.name;
  switch (decl->kind) {
  case NodeKind::OpDecl:
    op(cast<OpDecl>(decl));
    return;
  case NodeKind::ModuleDecl: {
    auto *node = cast<ModuleDecl>(decl);
    os << (node->isModel ? "model " : "module ") << name;
    params(node->params);
    if (!node->isModel) {
      os << " -> ";
      moduleResults(node->results);
    }
    os << ' ';
    block(node->body);
    break;
  }
  case NodeKind::StrategyDecl: {
    auto *node = cast<StrategyDecl>(decl);
    os << "strategy " << name;
    params(node->params);
    os << ' ';
    block(node->body);
    break;
  }
  case NodeKind::ScheduleDecl:
    os << "schedule " << name;
    params(cast<ScheduleDecl>(decl)->params);
    os << ' ';
    block(cast<ScheduleDecl>(decl)->body);
    break;
  case NodeKind::ConfigDecl: {
    auto *node = cast<ConfigDecl>(decl);
    os << "config " << name << " for " << node->model.name;
    extension(node->base);
    entries(node->entries);
    break;
  }
  case NodeKind::JobDecl: {
    auto *node = cast<JobDecl>(decl);
    os << "job " << name;
    extension(node->base);
    entries(node->entries, node->searches);
    break;
  }
  case NodeKind::PrecisionDecl:
    os << "precision " << name;
    entries(cast<PrecisionDecl>(decl)->entries);
    break;
  case NodeKind::FnDecl:
    os << "fn " << name;
    params(cast<FnDecl>(decl)->params);
    os << " = ";
    expr(cast<FnDecl>(decl)->value);
    os << ';';
    break;
  case NodeKind::OptimizerDecl: {
    auto *node = cast<OptimizerDecl>(decl);
    os << "optimizer " << name;
    params(node->params);
    os << ' ';
    block(node->body);
    break;
  }
  case NodeKind::LauncherDecl: {
    auto *node = cast<LauncherDecl>(decl);
    os << "launcher " << name << " for " << node->strategy.name << ' ';
    llvm::SmallVector<Stmt *, 16> body(node->flags.begin(), node->flags.end());
    block(body);
    break;
  }
  case NodeKind::MachineDecl: {
    auto *node = cast<MachineDecl>(decl);
    os << "machine " << name;
    extension(node->base);
    os << ' ';
    block(node->body);
    break;
  }
  case NodeKind::RuntimeDecl: {
    auto *node = cast<RuntimeDecl>(decl);
    os << "runtime " << name;
    extension(node->base);
    os << ' ';
    block(node->body);
    break;
  }
  default:
    llvm_unreachable("not a declaration");
  }
  os << '\n';
}

void Printer::op(const OpDecl *node) {
  os << "op " << node->name.name;
  params(node->params);
  ArrayRef<OpDecl::Result> results = node->results;
  if (results.size() == 1 && !results[0].name) {
    os << " -> ";
    type(results[0].type);
  } else if (!results.empty()) {
    os << " -> (";
    commas(results, [&](const OpDecl::Result &result) {
      if (result.name)
        os << result.name.name << ": ";
      type(result.type);
    });
    os << ')';
  }
  if (node->formula) {
    os << " = ";
    expr(node->formula);
  }
  optionalBlock(node->body);
}

void Printer::moduleResults(ArrayRef<TensorType *> results) {
  os << (results.size() == 1 ? "" : "(");
  commas(results, [&](const TensorType *result) { type(result); });
  os << (results.size() == 1 ? "" : ")");
}

void Printer::extension(const Ident &base) {
  if (base)
    os << " extends " << base.name;
}

void Printer::entries(ArrayRef<EntryStmt *> list, ArrayRef<SearchStmt *> searches) {
  os << ' ';
  llvm::SmallVector<Stmt *, 16> body(list.begin(), list.end());
  body.append(searches.begin(), searches.end());
  block(body);
}

void ast::print(llvm::raw_ostream &os, const File &file) { Printer(os).file(file); }
