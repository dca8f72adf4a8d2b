//===- CheckDefines.cpp - values of the command line that are none --------===//
#include "CheckDefines.h"
#include "Meanings.h"
#include "stage/Sema/Builtins.h"
#include "stage/Sema/Diagnostics.h"
#include "stage/Sema/Suggestions.h"

using namespace stage;
using namespace stage::sema;
using llvm::dyn_cast;

bool stage::sema::checkDefinedWord(const Program &program, const ast::Expr &value, StringRef kind,
                                   DiagnosticEngine &diags) {
  auto *call = dyn_cast<ast::CallExpr>(&value);
  auto *name = dyn_cast<ast::NameExpr>(call ? call->callee : &value);
  if (!name || program.lookup(*program.getMain(), name->name) || findBuiltin(name->name) ||
      program.isLegalWord(name->name))
    return true;
  DiagnosticBuilder error = diags.report(name->loc(), diag::UnknownName).range(name->range) << name->name;
  if (!suggestImportOfKind(error, program, name->name, kind))
    program.suggestOfKind(error, name->name, name->range, kind, *program.getMain());
  return false;
}

bool stage::sema::checkDefines(const Program &program, const Overrides &overrides, StringRef owner,
                               ArrayRef<ast::Param> params, DiagnosticEngine &diags) {
  bool good = true;
  for (auto [target, value] : overrides.listValues(owner)) {
    auto param = llvm::find_if(params, [&, name = target](const ast::Param &known) { return known.name.name == name; });
    if (param == params.end())
      continue;
    auto *number = llvm::dyn_cast_or_null<ast::NumberExpr>(param->defaultValue);
    auto *list = llvm::dyn_cast_or_null<ast::ListExpr>(param->legal);
    auto *name = dyn_cast<ast::NameExpr>(value);
    bool isUnknown = name && !program.lookup(*program.getMain(), name->name) && !findBuiltin(name->name) &&
                     !program.isLegalWord(name->name) &&
                     llvm::none_of(params, [&](const ast::Param &known) { return known.name.name == name->name; });
    if (auto *range = dyn_cast<ast::RangeExpr>(value); range && number) {
      reportRangeOfValues(diags, value->range, target);
      good = false;
    } else if (param->scalarKind.name == StringRef("schedule")) {
      good &= checkDefinedWord(program, *value, "schedule", diags);
    } else if (isUnknown && (number || list)) {
      DiagnosticBuilder error = diags.report(name->loc(), diag::UnknownName).range(name->range) << name->name;
      std::vector<Candidate> words;
      for (const ast::Expr *element : list ? list->elements : ArrayRef<ast::Expr *>())
        if (auto *known = dyn_cast<ast::NameExpr>(element))
          words.push_back({known->name, SMLoc()});
      if (list && findNearest(name->name, words))
        suggestNearest(error, name->name, name->range, words);
      else if (list)
        error.note(param->name.loc(), diag::ParameterIsOneOf) << target << textOf(list);
      else
        error.note(param->name.loc(), diag::ParameterIsNumber) << target << textOf(number);
      good = false;
    }
  }
  return good;
}
