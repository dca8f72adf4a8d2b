//===- BindPipeline.cpp - the pipeline of a strategy ----------------------===//
//
//   pipeline layers over pp { schedule = interleaved(v = 2); split = [3, 4, 4, 5]; place embed = first; }
//
// The schedule is run for the stages and microbatches of the job; how layers are split is checked once there is a
// model. Inference runs no schedule.
//
//===----------------------------------------------------------------------===//
#include "BindStrategy.h"
#include "JobWords.h"
#include "Meanings.h"
#include "PartAxes.h"
#include "stage/Schedule/BalancedSplit.h"
#include "stage/Sema/Diagnostics.h"
#include "stage/Sema/Suggestions.h"
#include "llvm/ADT/StringSwitch.h"

using namespace stage;
using namespace stage::sema;
using llvm::dyn_cast;

/// `split = [3, 4, 4]`, `split = balanced(flops)`, `split = none`
static bool bindSplit(Evaluator &evaluator, const ast::EntryStmt &entry, BoundPipeline &pipeline) {
  std::optional<CTValue> value = evaluator.evaluate(entry.value, *pipeline.env);
  if (!value)
    return false;
  if (value->isNone())
    return true;
  if (value->getKind() == CTValue::Kind::Word)
    pipeline.balance = llvm::StringSwitch<Balance>(value->getText())
                           .Case("balanced(flops)", Balance::Flops)
                           .Case("balanced(memory)", Balance::Memory)
                           .Default(Balance::None);
  if (pipeline.balance != Balance::None)
    return true;
  if (value->getKind() != CTValue::Kind::List) {
    evaluator.getDiags().report(entry.value->loc(), diag::WrongKind).range(entry.value->range)
        << "a list of integers, 'balanced(flops)' or 'balanced(memory)'" << evaluator.format(*value);
    return false;
  }
  auto *list = dyn_cast<ast::ListExpr>(entry.value);
  for (size_t i = 0; i != value->getElements().size(); ++i) {
    const CTValue &element = value->getElements()[i];
    SMRange range = list ? list->elements[i]->range : entry.value->range;
    Size size = element.isNumber() ? element.getSize(evaluator.getSizes()) : Size();
    if (!size) {
      evaluator.getDiags().report(range.Start, diag::WrongKind).range(range)
          << "an integer" << evaluator.format(element);
      return false;
    }
    std::optional<int64_t> count = evaluator.getValue(size, range, "an element of 'split'");
    if (!count)
      return false;
    if (*count < 0) {
      evaluator.getDiags().report(range.Start, diag::NegativeSplit).range(range) << *count;
      return false;
    }
    pipeline.split.push_back(*count);
  }
  pipeline.splitRange = entry.value->range;
  return true;
}

/// `send = early`, `send = at_end`, and `messages = blocking`, `messages = free`: the usual word, or the other one,
/// which is a mode.
static bool bindSend(Evaluator &evaluator, const ast::EntryStmt &entry, BoundPipeline &pipeline) {
  std::optional<CTValue> value = evaluator.evaluate(entry.value, *pipeline.env);
  if (!value)
    return false;
  DiagnosticEngine &diags = evaluator.getDiags();
  bool isOfMessages = entry.name.name == messagesWord;
  StringRef word = value->getKind() == CTValue::Kind::Word ? value->getText() : "";
  if (word == (isOfMessages ? freeWord : atEndWord))
    return true;
  if (word != (isOfMessages ? blockingWord : earlyWord)) {
    DiagnosticBuilder error = diags.report(entry.value->loc(), diag::WrongKind).range(entry.value->range)
                              << (isOfMessages ? "the word 'free' or 'blocking'" : "the word 'at_end' or 'early'")
                              << (value->isDecl() ? "a declaration called '" : "'") + evaluator.format(*value) + "'";
    if (value->isDecl())
      error.note(value->getDecl()->name.loc(), diag::WordIsHidden) << value->getDecl()->name.name;
    return false;
  }
  if (pipeline.send != MessageMode::AtEnd) {
    diags.report(entry.value->loc(), diag::EarlyMessagesBlock).range(entry.value->range);
    return false;
  }
  pipeline.send = isOfMessages ? MessageMode::Blocking : MessageMode::Early;
  return true;
}

/// `scatter_gather = tp;`: ranks of one stage.
static bool bindScatterGather(Evaluator &evaluator, const ast::EntryStmt &entry, const BoundStrategy &strategy,
                              const BoundRule &rule, BoundPipeline &pipeline) {
  std::optional<CTValue> value = PartAxes(evaluator, strategy).evaluate(entry.value, *rule.env, *rule.call);
  if (!value)
    return false;
  for (const CTValue &name : value->getElements())
    for (StringRef axis : strategy.expand({ast::Ident{name.getText(), SMRange()}, SMRange()})) {
      if (axis == pipeline.axis) {
        evaluator.getDiags().report(entry.value->loc(), diag::ScatterOverStages).range(entry.value->range) << axis;
        return false;
      }
      pipeline.scatterGather |= uint32_t(1) << (strategy.findAxis(axis) - strategy.mesh.data());
    }
  return true;
}

/// `place embed = first;`, `place gf, head = last;`, or with the name of a number.
static bool bindPlace(Evaluator &evaluator, const ast::PlaceStmt &place, int64_t stages, BoundPipeline &pipeline) {
  int64_t last = stages * pipeline.schedule.chunks / pipeline.schedule.copies - 1;
  std::optional<int64_t> where;
  const CTValue *value = pipeline.env->find(place.where.name);
  if (value) {
    Size size = value->isNumber() ? value->getSize(evaluator.getSizes()) : Size();
    where = size ? evaluator.getValue(size, place.where.range, "a virtual stage") : std::nullopt;
    if (size && !where)
      return false;
  } else if (place.where.name == "first" || place.where.name == "last") {
    where = place.where.name == "first" ? 0 : last;
  }
  if (!where || *where < 0 || (*where > last && last > 0)) {
    DiagnosticBuilder error = evaluator.getDiags().report(place.where.loc(), diag::BadPlace).range(place.where.range)
                              << last << (value ? evaluator.format(*value) : place.where.name.str());
    return false;
  }
  for (const ast::Ident &name : place.names)
    pipeline.placements.emplace_back(name, *where);
  return true;
}

bool stage::sema::bindPipeline(Evaluator &evaluator, BoundStrategy &strategy, int64_t microbatches, bool isTraining) {
  auto rule = llvm::find_if(strategy.rules, [](const BoundRule &r) { return llvm::isa<ast::PipelineStmt>(r.stmt); });
  if (rule == strategy.rules.end())
    return true;
  BoundPipeline pipeline;
  pipeline.stmt = llvm::cast<ast::PipelineStmt>(rule->stmt);
  pipeline.env = rule->env;
  pipeline.axis = strategy.expand(pipeline.stmt->axes, pipeline.env).front();

  DiagnosticEngine &diags = evaluator.getDiags();
  const ast::EntryStmt *scheduleEntry = nullptr;
  for (const ast::Stmt *stmt : pipeline.stmt->entries) {
    auto *entry = dyn_cast<ast::EntryStmt>(stmt);
    if (!entry)
      continue; // `place`: once the virtual stages are known
    bool good = true;
    if (entry->name.name == "schedule")
      scheduleEntry = entry;
    else if (entry->name.name == scatterGatherWord)
      good = bindScatterGather(evaluator, *entry, strategy, *rule, pipeline);
    else
      good = (entry->name.name == "split" ? bindSplit : bindSend)(evaluator, *entry, pipeline);
    if (!good)
      return false;
  }
  if (!scheduleEntry) {
    std::string pipelined = getText(pipeline.stmt->range);
    StringRef head = StringRef(pipelined).split('{').first.rtrim("; ");
    diags.report(pipeline.stmt->loc(), diag::EntryMissing)
        .range(pipeline.stmt->range)
        .with("pipeline", "schedule", "one_f_one_b")
        .note(SMLoc(), diag::FormInstead)
        .with((head + " { schedule = one_f_one_b; }").str());
    return false;
  }
  std::optional<CTValue> value = evaluator.evaluate(scheduleEntry->value, *pipeline.env);
  if (!value)
    return false;
  auto *schedule = value->isDecl() ? dyn_cast<ast::ScheduleDecl>(value->getDecl()) : nullptr;
  if (!schedule) {
    DiagnosticBuilder error =
        diags.report(scheduleEntry->value->loc(), diag::WrongKind).range(scheduleEntry->value->range)
        << "a schedule" << evaluator.format(*value);
    if (value->getKind() == CTValue::Kind::String)
      error.note(SMLoc(), diag::NamesHaveNoQuotes);
    evaluator.getProgram().suggestOfKind(error, evaluator.format(*value), scheduleEntry->value->range, "schedule",
                                         pipeline.env->getFile());
    return false;
  }
  if (isTraining) {
    std::optional<BoundSchedule> bound = runSchedule(evaluator, *schedule, strategy.findAxis(pipeline.axis)->size,
                                                     microbatches, value->getArguments(), scheduleEntry->value->range);
    if (!bound)
      return false;
    pipeline.schedule = std::move(*bound);
  }
  for (const ast::Stmt *stmt : pipeline.stmt->entries)
    if (auto *place = dyn_cast<ast::PlaceStmt>(stmt);
        place && !bindPlace(evaluator, *place, strategy.findAxis(pipeline.axis)->size, pipeline))
      return false;
  strategy.pipeline = std::move(pipeline);
  return true;
}
