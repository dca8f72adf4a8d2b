//===- WriteJob.cpp - a plan of a job as a program ------------------------===//
//
//   strategy = megatron(pp = 1, dp = gpus / (pp * tp), tp = 1);         with pp = 4, dp = 8, tp = 2
//   strategy = megatron(pp = 4, dp = 8, tp = 2);
//
// The file has the imports and declarations of the program, and one job: the entries of the job and of those that it
// extends, with the values of the plan in their calls.
//
// Limits: names are those of the main file, so that a job that extends one of another file is not written.
//
//===----------------------------------------------------------------------===//
#include "JobParts.h"
#include "JobWords.h"
#include "stage/Sema/Diagnostics.h"
#include "stage/Sema/Search.h"
#include "llvm/Support/raw_ostream.h"

using namespace stage;
using namespace stage::sema;
using llvm::dyn_cast;

namespace {
class JobWriter {
public:
  JobWriter(Program &program, ArrayRef<WrittenValue> values, const JobParts &parts)
      : context(program.getContext()), values(values), parts(parts) {}

  ast::EntryStmt *write(const ast::EntryStmt &entry) {
    ast::EntryStmt *copy = context.create(entry);
    StringRef word = entry.name.name;
    if (word == strategyWord && parts.strategy.decl)
      copy->value = writeCall(entry.value, strategyWord, parts.strategy.decl->params);
    else if (word == modelWord && parts.model.decl)
      copy->value = writeCall(entry.value, configWord, parts.model.decl->params);
    else if (word == stepWord)
      copy->value = writeCall(entry.value, stepWord, {});
    return copy;
  }

private:
  /// An expression that is printed as this text.
  ast::Expr *makeText(StringRef text) {
    ast::NameExpr name;
    name.kind = ast::NodeKind::NameExpr;
    name.name = context.copy(text);
    return context.create(name);
  }

  ast::Expr *writeCall(ast::Expr *expr, StringRef owner, ArrayRef<ast::Param> params) {
    if (auto *with = dyn_cast<ast::WithExpr>(expr)) {
      ast::WithExpr *copy = context.create(*with);
      copy->base = writeCall(with->base, owner, params);
      return copy;
    }
    ast::CallExpr call;
    call.kind = ast::NodeKind::CallExpr;
    call.callee = expr;
    if (auto *given = dyn_cast<ast::CallExpr>(expr))
      call = *given;
    std::vector<ast::Argument> args(call.args.begin(), call.args.end());
    for (const WrittenValue &value : values) {
      if (value.owner != owner)
        continue;
      ast::Argument *place = nullptr;
      for (size_t i = 0; i != args.size(); ++i)
        if (args[i].name ? args[i].name.name == value.name : i < params.size() && params[i].name.name == value.name)
          place = &args[i];
      if (!place) {
        place = &args.emplace_back();
        place->name.name = context.copy(StringRef(value.name));
      }
      place->value = makeText(value.text);
    }
    call.args = context.copy(ArrayRef<ast::Argument>(args));
    return context.create(call);
  }

  ast::ASTContext &context;
  ArrayRef<WrittenValue> values;
  const JobParts &parts;
};
} // namespace

std::optional<std::string> stage::sema::writeJob(Program &program, const ast::JobDecl &job,
                                                 const SearchedStrategy &strategy, ArrayRef<WrittenValue> values,
                                                 DiagnosticEngine &diags) {
  JobParts parts(program, job, strategy);
  JobWriter writer(program, values, parts);
  std::vector<ast::EntryStmt *> entries;
  for (const auto &[word, place] : parts.entries) {
    auto [entry, file] = place;
    if (file != program.getMain()) {
      diags.report(job.name.loc(), diag::JobOfOtherFile).range(job.name.range) << job.name.name << file->path;
      return std::nullopt;
    }
    entries.push_back(writer.write(*entry));
  }
  ast::JobDecl written = job;
  written.base = ast::Ident();
  written.entries = program.getContext().copy(ArrayRef<ast::EntryStmt *>(entries));
  written.searches = {};
  ast::File file = *program.getMain();
  std::vector<ast::Decl *> decls;
  for (ast::Decl *decl : file.decls)
    if (!llvm::isa<ast::JobDecl>(decl))
      decls.push_back(decl);
  decls.push_back(program.getContext().create(written));
  file.decls = program.getContext().copy(ArrayRef<ast::Decl *>(decls));
  std::string text;
  llvm::raw_string_ostream os(text);
  ast::print(os, file);
  return os.str();
}
