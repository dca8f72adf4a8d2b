//===- SearchedStrategies.cpp - the strategies that a search tries --------===//
//
// `strategy in [megatron(tp = 1), fsdp(dp = gpus)];` in the block of a job, or `-D strategy='fsdp(dp = 8),single()'` of
// the command line, which counts where both are said. A plan gets the text of the call as its entry `strategy`, which
// is read in the main file: the call must mean the same there.
//
//===----------------------------------------------------------------------===//
#include "JobParts.h"
#include "JobWords.h"
#include "Overrides.h"
#include "stage/Sema/Diagnostics.h"

using namespace stage;
using namespace stage::sema;
using ast::textOf;

static bool isStrategy(StringRef name) {
  return name == strategyWord || (name.consume_front(jobWord) && name.consume_front(".") && name == strategyWord);
}

/// The expression of a value of the command line; null after a report.
static const ast::Expr *read(Program &program, const ast::JobDecl &job, const OverrideValue &value,
                             DiagnosticEngine &diags) {
  Overrides overrides(program, Override{(jobWord + "." + strategyWord).str(), value}, diags);
  if (!overrides.isValid())
    return nullptr;
  overrides.resolve(Overrides::Target{jobWord, strategyWord, job.name.loc()}, /*isLast=*/true);
  return overrides.find(jobWord, strategyWord);
}

/// The calls that the block of the job lists. Nothing after a report.
static std::optional<std::vector<SearchedStrategy>> readBlock(const Program &program, const ast::JobDecl &job,
                                                              DiagnosticEngine &diags) {
  JobParts parts(program, job);
  std::vector<SearchedStrategy> strategies;
  if (!parts.search)
    return strategies;
  const ast::File &main = *program.getMain();
  for (const ast::SearchStmt::Values &entry : parts.search->values) {
    if (entry.name.name != strategyWord)
      continue;
    std::optional<std::vector<const ast::Expr *>> calls = listStrategyCalls(entry);
    if (!calls)
      return std::nullopt; // reported by checkNames
    if (calls->empty()) {
      diags.report(entry.values->loc(), diag::EmptyDomain).range(entry.values->range)
          << entry.name.name << textOf(entry.values);
      return std::nullopt;
    }
    for (const ast::Expr *call : *calls) {
      const ast::StrategyDecl *decl = findCalledStrategy(program, call, *parts.searchFile);
      if (decl != findCalledStrategy(program, call, main)) {
        diags.report(call->loc(), diag::StrategyNotInMain).range(call->range) << textOf(call) << main.path;
        return std::nullopt;
      }
      strategies.push_back({call, &main, textOf(call), ""});
    }
  }
  return strategies;
}

std::optional<std::vector<SearchedStrategy>> stage::sema::findSearchedStrategies(Program &program,
                                                                                 const ast::JobDecl &job,
                                                                                 ArrayRef<SearchChange> changes,
                                                                                 DiagnosticEngine &diags) {
  std::vector<SearchedStrategy> strategies;
  for (const SearchChange &change : changes) {
    if (!isStrategy(change.name))
      continue;
    for (const OverrideValue &value : change.values) {
      const ast::Expr *call = read(program, job, value, diags);
      if (!call)
        return std::nullopt;
      strategies.push_back({call, program.getMain(), value.getSpelling(), ""});
    }
  }
  if (strategies.empty()) {
    std::optional<std::vector<SearchedStrategy>> ofBlock = readBlock(program, job, diags);
    if (!ofBlock)
      return std::nullopt;
    strategies = std::move(*ofBlock);
  }
  llvm::DenseMap<const ast::StrategyDecl *, unsigned> numCalls;
  for (const SearchedStrategy &strategy : strategies) {
    const ast::StrategyDecl *decl = findCalledStrategy(program, strategy.value, *strategy.file);
    if (!decl) {
      diags.report(strategy.value->loc(), diag::SearchedStrategy).range(strategy.value->range) << strategy.text;
      return std::nullopt;
    }
    ++numCalls[decl];
  }
  for (SearchedStrategy &strategy : strategies) {
    const ast::StrategyDecl *decl = findCalledStrategy(program, strategy.value, *strategy.file);
    strategy.label = numCalls[decl] == 1 ? decl->name.name.str() : strategy.text;
  }
  return strategies;
}
