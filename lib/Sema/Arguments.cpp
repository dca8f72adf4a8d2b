//===- Arguments.cpp - which argument is which parameter's ----------------===//
#include "stage/Sema/Arguments.h"
#include "Meanings.h"
#include "stage/Sema/Diagnostics.h"
#include "stage/Sema/Program.h"
#include "stage/Sema/Suggestions.h"

using namespace stage;
using namespace stage::sema;

static SMRange getRange(const ast::Argument &argument) { return argument.value->range; }
static SMRange getRange(const NamedValue &argument) { return argument.range; }

/// `f(a, n = 2, c)`: the first parameter that no argument takes is that of `c`.
template <typename Argument>
static std::string suggestName(ArrayRef<ast::Param> params, ArrayRef<Argument> args, size_t position, SMRange range) {
  for (const ast::Param &param : params.drop_front(std::min(position, params.size())))
    if (llvm::none_of(args, [&](const Argument &other) { return other.name.name == param.name.name; }))
      return (param.name.name + " = ").str() + getText(range);
  return "name = " + getText(range);
}

template <typename Argument>
static std::optional<llvm::SmallVector<const Argument *, 8>>
match(ArrayRef<ast::Param> params, ArrayRef<Argument> args, StringRef callee, SMRange callRange,
      DiagnosticEngine &diags, bool allNeeded, const Program *program, const CallPlace &caller) {
  llvm::SmallVector<const Argument *, 8> matched(params.size(), nullptr);
  bool ok = true, named = false;
  size_t position = 0;
  for (const Argument &argument : args) {
    SMRange range = getRange(argument);
    size_t slot = position;
    if (argument.name) {
      named = true;
      slot = llvm::find_if(params, [&](const ast::Param &p) { return p.name.name == argument.name.name; }) -
             params.begin();
      if (slot == params.size()) {
        llvm::SmallVector<StringRef, 8> others;
        for (const Argument &other : args)
          if (other.name && &other != &argument)
            others.push_back(other.name.name);
        DiagnosticBuilder error = diags.report(argument.name.loc(), diag::UnknownArgument).range(argument.name.range)
                                  << callee << argument.name.name;
        explainArgument(error, program, params, argument.name, getText(range), others, callRange);
        if (params.empty())
          error.note(SMLoc(), diag::HasNoParameters) << callee;
        ok = false;
        continue;
      }
    } else if (named) {
      // An unknown name before it may have taken its place.
      if (ok)
        diags.report(range.Start, diag::PositionalAfterNamed)
            .range(range)
            .note(SMLoc(), diag::FormInstead)
            .with(suggestName(params, args, position, range));
      ok = false;
      continue;
    } else if (position >= params.size()) {
      DiagnosticBuilder error = diags.report(range.Start, diag::TooManyArguments).range(range)
                                << callee << int64_t(params.size());
      std::string names;
      for (const ast::Param &param : params)
        names += (names.empty() ? "'" : ", '") + param.name.name.str() + "'";
      bool isNested = caller.outerLacks && callRange.End.isValid() &&
                      (*callRange.End.getPointer() == ',' || *callRange.End.getPointer() == ')');
      bool takesTensors = !params.empty() && llvm::all_of(params, [](const ast::Param &param) { return param.tensor; });
      std::string kept = position ? getText({callRange.Start, getRange(args[position - 1]).End}) : callee.str() + "(";
      if (!params.empty() && isNested)
        error.note(SMLoc(), diag::NameInstead)
            << "it takes " + names + "; an argument of the call around it stands behind the parenthesis, as in '" +
                   kept + "), " + getText(range) + "'";
      else if (takesTensors && args.size() == params.size() + 1)
        error.note(SMLoc(), diag::NameInstead)
            << "it takes " + names + "; a bias is added to the result: write '" + kept + ") + " + getText(range) + "'";
      else if (!params.empty())
        error.note(SMLoc(), diag::NameInstead) << "it takes " + names;
      return std::nullopt; // one is enough
    } else {
      ++position;
    }
    if (matched[slot]) {
      diags.report(range.Start, diag::ArgumentTwice)
          .range(range)
          .with(params[slot].name.name)
          .note(getRange(*matched[slot]).Start, diag::OtherOneHere);
      ok = false;
      continue;
    }
    matched[slot] = &argument;
  }
  for (size_t i = 0; allNeeded && i != params.size(); ++i) {
    if (matched[i] || params[i].defaultValue || !ok)
      continue;
    DiagnosticBuilder error = diags.report(callRange.Start, diag::MissingArgument).range(callRange)
                              << callee << params[i].name.name;
    explainMissing(error, callee, getText(callRange), params[i], caller.sees && caller.sees(params[i].name.name));
    ok = false;
    break;
  }
  if (!ok)
    return std::nullopt;
  return matched;
}

std::optional<llvm::SmallVector<const ast::Argument *, 8>>
stage::sema::matchArguments(ArrayRef<ast::Param> params, ArrayRef<ast::Argument> args, StringRef callee,
                            SMRange callRange, DiagnosticEngine &diags, const Program *program,
                            const CallPlace &caller) {
  return match(params, args, callee, callRange, diags, /*allNeeded=*/true, program, caller);
}

std::optional<llvm::SmallVector<const NamedValue *, 8>>
stage::sema::matchArguments(ArrayRef<ast::Param> params, ArrayRef<NamedValue> args, StringRef callee, SMRange callRange,
                            DiagnosticEngine &diags, bool allNeeded, const Program *program) {
  return match(params, args, callee, callRange, diags, allNeeded, program, CallPlace());
}
