//===- Arguments.cpp - which argument is which parameter's ----------------===//
#include "stage/Sema/Arguments.h"
#include "stage/Sema/Diagnostics.h"
#include "stage/Sema/Program.h"
#include "stage/Sema/Suggestions.h"

using namespace stage;
using namespace stage::sema;

static SMRange getRange(const ast::Argument &argument) { return argument.value->range; }
static SMRange getRange(const NamedValue &argument) { return argument.range; }

/// `layers = 4`: the parameter whose description begins with this word, `/// Layers.`; null: there is not just one.
static const ast::Param *findDescribed(ArrayRef<ast::Param> params, StringRef name) {
  const ast::Param *found = nullptr;
  unsigned count = 0;
  for (const ast::Param &param : params) {
    StringRef about = param.doc.empty() ? "" : param.doc.front().ltrim();
    if (about.take_while(llvm::isAlpha).equals_insensitive(name)) {
      found = &param;
      ++count;
    }
  }
  return count == 1 ? found : nullptr;
}

template <typename Argument>
static std::optional<llvm::SmallVector<const Argument *, 8>> match(ArrayRef<ast::Param> params, ArrayRef<Argument> args,
                                                                   StringRef callee, SMRange callRange,
                                                                   DiagnosticEngine &diags, bool allNeeded) {
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
        std::vector<Candidate> names;
        for (const ast::Param &param : params)
          names.push_back({param.name.name, param.name.loc()});
        DiagnosticBuilder error = diags.report(argument.name.loc(), diag::UnknownArgument)
                                  << callee << argument.name.name;
        const Candidate *nearest = findNearest(argument.name.name, names);
        const ast::Param *meant = nearest ? nullptr : findDescribed(params, argument.name.name);
        if (meant) {
          error.fixIt(argument.name.range, meant->name.name);
          error.note(meant->name.loc(), diag::DidYouMean) << meant->name.name;
        } else {
          suggestNearest(error, argument.name.name, argument.name.range, names);
        }
        if (params.empty())
          error.note(SMLoc(), diag::HasNoParameters) << callee;
        ok = false;
        continue;
      }
    } else if (named) {
      diags.report(range.Start, diag::PositionalAfterNamed).range(range);
      ok = false;
      continue;
    } else if (position >= params.size()) {
      diags.report(range.Start, diag::TooManyArguments).range(range) << callee << int64_t(params.size());
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
    diags.report(callRange.Start, diag::MissingArgument)
        .range(callRange)
        .with(callee, params[i].name.name)
        .note(params[i].name.loc(), diag::ParameterHere)
        .with(callee, params[i].name.name);
    ok = false;
    break;
  }
  if (!ok)
    return std::nullopt;
  return matched;
}

std::optional<llvm::SmallVector<const ast::Argument *, 8>>
stage::sema::matchArguments(ArrayRef<ast::Param> params, ArrayRef<ast::Argument> args, StringRef callee,
                            SMRange callRange, DiagnosticEngine &diags) {
  return match(params, args, callee, callRange, diags, /*allNeeded=*/true);
}

std::optional<llvm::SmallVector<const NamedValue *, 8>>
stage::sema::matchArguments(ArrayRef<ast::Param> params, ArrayRef<NamedValue> args, StringRef callee, SMRange callRange,
                            DiagnosticEngine &diags, bool allNeeded) {
  return match(params, args, callee, callRange, diags, allNeeded);
}
