//===- Schedules.cpp - running a schedule program -------------------------===//
//
// Problem: a schedule says what one stage does, as a program; the compiler wants the
// list of units of every stage.
//
// Algorithm: run the program once for each r, statement by statement, in an
// environment of its parameters. Everything in it is an integer, so the evaluator
// stays on its fast path. `virtual` must come before the units whose chunks it
// counts. A schedule may run another one, with arguments of its own. What the placements of all stages say together is
// checked at the end.
//
// Limits: steps (of all stages together) and units per stage are bounded, so that a
// schedule that runs away is an error and not a full memory.
//
//===----------------------------------------------------------------------===//
#include "stage/Sema/Schedules.h"
#include "ScheduleWords.h"
#include "stage/Sema/Arguments.h"
#include "stage/Sema/Diagnostics.h"
#include "stage/Sema/KeptBindings.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"

using namespace stage;
using namespace stage::sema;
using llvm::dyn_cast;

constexpr uint64_t maxSteps = 50'000'000;
/// A unit is at most a forward, an input gradient and a weight gradient of each microbatch and chunk.
constexpr int64_t kindsPerMicrobatch = 3;
/// Far beyond any pipeline; keeps products of the two in 63 bits and tables in memory.
constexpr int64_t maxChunks = 1 << 16, maxStages = 1 << 16;

namespace {
class ScheduleRunner {
public:
  ScheduleRunner(Evaluator &evaluator, const ast::ScheduleDecl &schedule, int64_t stages, int64_t microbatches,
                 SMRange usedAt)
      : evaluator(evaluator), diags(evaluator.getDiags()), schedule(schedule), stages(stages),
        microbatches(microbatches), usedAt(usedAt), isOfUser(!evaluator.getProgram().isOfLibrary(schedule)) {}

  std::optional<BoundSchedule> run(ArrayRef<NamedValue> args);

private:
  bool bindParams(ArrayRef<ast::Param> params, ArrayRef<NamedValue> args, const ast::ScheduleDecl &of, SMRange at,
                  Environment &env);
  bool runStage(int64_t r, const Environment &arguments);
  bool runBody(ArrayRef<ast::Stmt *> body, Environment &env);
  bool runStmt(const ast::Stmt *stmt, Environment &env);
  bool runFor(const ast::ForStmt *loop, const Environment &env);
  bool runVirtual(const ast::VirtualStmt *stmt, const Environment &env);
  bool runCall(const ast::CallExpr *call, const Environment &env);
  bool runOther(const ast::CallExpr *call, const Environment &env);
  bool runUnit(PhaseKind kind, const ast::CallExpr *call, const Environment &env);
  bool runList(const ast::CallExpr *call);
  bool pairUp(SMRange range);
  bool addUnit(PhaseKind kind, int64_t microbatch, int64_t chunk, SMRange range);
  bool checkPlacement();
  template <diag::Kind... Missing, typename... Arguments>
  bool fail(SMRange range, diag::Message<Missing...> message, const Arguments &...arguments);

  Evaluator &evaluator;
  DiagnosticEngine &diags;
  const ast::ScheduleDecl &schedule;
  int64_t stages, microbatches;
  SMRange usedAt;
  const bool isOfUser; ///< Its units are known by their places; those of the library by the rule that names it.
  BoundSchedule result;
  int64_t stage = 0;
  int64_t numUnits = 0;    ///< Of this stage so far.
  bool sawVirtual = false; ///< On this stage.
  const ast::VirtualStmt *placement = nullptr;
  llvm::SmallVector<const ast::ScheduleDecl *, 4> running; ///< The schedule, and those that it runs at the moment.
};
} // namespace

/// What to write in place of a unit or list that does not fit; empty: the message says it.
static StringRef findInstead(diag::ID message, StringRef text) {
  if (message == diag::ScheduleListStage)
    return "the list has a list of units for each stage, as in 'list([[F0, F1, B0, B1], [F0, B0, F1, B1]]);'";
  if (message == diag::ScheduleListUnit && text.startswith("\""))
    return "units have no quotes, as in [F0, B0]";
  if (message == diag::NoSuchChunk)
    return "chunks are the virtual stages of a stage: 'forward(i)' runs chunk 0, and a schedule with 'virtual 2;' has "
           "two of them";
  return message == diag::NoSuchMicrobatch ? "a loop over all microbatches is 'for i in 0..m { ... }'" : "";
}

template <diag::Kind... Missing, typename... Arguments>
bool ScheduleRunner::fail(SMRange range, diag::Message<Missing...> message, const Arguments &...arguments) {
  DiagnosticBuilder error = diags.report(range.Start, message).range(range).with(arguments...);
  StringRef source(range.Start.getPointer(), range.isValid() ? 1 : 0);
  if (StringRef instead = findInstead(message, source); !instead.empty())
    error.note(SMLoc(), diag::NameInstead) << instead;
  error.note(usedAt.Start, diag::ScheduleUsedHere) << schedule.name.name << stages << microbatches << stage;
  return false;
}

std::optional<BoundSchedule> ScheduleRunner::run(ArrayRef<NamedValue> args) {
  result.decl = &schedule;
  Environment arguments(evaluator.getProgram().getFile(schedule));
  arguments.define(schedule.params[0].name.name, CTValue::integer(stages));
  arguments.define(schedule.params[1].name.name, CTValue::integer(microbatches));
  if (!bindParams(schedule.params.drop_front(numScheduleParams), args, schedule, usedAt, arguments))
    return std::nullopt;
  running = {&schedule};
  if (stages > maxStages) {
    fail(usedAt, diag::ScheduleTooManyStages, maxStages);
    return std::nullopt;
  }
  evaluator.setStepLimit(maxSteps);
  auto unlimited = llvm::make_scope_exit([&] { evaluator.setStepLimit(UINT64_MAX); });
  for (int64_t r = 0; r != stages; ++r)
    if (!runStage(r, arguments)) {
      if (evaluator.isOutOfSteps())
        fail(schedule.name.range, diag::ScheduleTooManySteps, schedule.name.name, maxSteps);
      return std::nullopt;
    }
  if (!checkPlacement())
    return std::nullopt;
  return std::move(result);
}

/// Parameters get their arguments, or else their default values, in an environment that has those before them.
bool ScheduleRunner::bindParams(ArrayRef<ast::Param> params, ArrayRef<NamedValue> args, const ast::ScheduleDecl &of,
                                SMRange at, Environment &env) {
  auto matched = matchArguments(params, args, of.name.name, at, diags, /*allNeeded=*/true, &evaluator.getProgram());
  if (!matched)
    return false;
  for (size_t i = 0; i != params.size(); ++i) {
    const NamedValue *given = (*matched)[i];
    std::optional<CTValue> value = given ? evaluator.convert(given->value, params[i], env, given->range)
                                         : evaluator.evaluateParam(params[i], nullptr, env, env);
    if (!value)
      return false;
    env.define(params[i].name.name, std::move(*value));
  }
  return true;
}

bool ScheduleRunner::runStage(int64_t r, const Environment &arguments) {
  Environment env(arguments);
  env.define(schedule.params[2].name.name, CTValue::integer(r));
  stage = r;
  numUnits = 0;
  sawVirtual = false;
  result.units.emplace_back();
  return runBody(schedule.body, env);
}

bool ScheduleRunner::runBody(ArrayRef<ast::Stmt *> body, Environment &env) {
  return llvm::all_of(body, [&](const ast::Stmt *stmt) { return runStmt(stmt, env); });
}

bool ScheduleRunner::runStmt(const ast::Stmt *stmt, Environment &env) {
  if (!evaluator.step())
    return false;
  if (auto *let = dyn_cast<ast::LetStmt>(stmt)) {
    std::optional<CTValue> value = evaluator.evaluate(let->value, env);
    if (value)
      env.define(let->targets[0].name, std::move(*value));
    return value.has_value();
  }
  if (auto *loop = dyn_cast<ast::ForStmt>(stmt))
    return runFor(loop, env);
  if (auto *choice = dyn_cast<ast::IfStmt>(stmt)) {
    std::optional<bool> condition = evaluator.evaluateCondition(choice->condition, env);
    Environment inner(env);
    return condition && runBody(*condition ? choice->thenBody : choice->elseBody, inner);
  }
  if (auto *require = dyn_cast<ast::RequireStmt>(stmt))
    return evaluator.checkRequire(*require, env);
  if (auto *fn = dyn_cast<ast::FnStmt>(stmt)) {
    env.define(fn->name.name, CTValue::function(fn));
    return true;
  }
  if (auto *place = dyn_cast<ast::VirtualStmt>(stmt))
    return runVirtual(place, env);
  return runCall(llvm::cast<ast::CallExpr>(llvm::cast<ast::ExprStmt>(stmt)->value), env);
}

bool ScheduleRunner::runFor(const ast::ForStmt *loop, const Environment &env) {
  std::optional<int64_t> begin = evaluator.evaluateInteger(loop->begin, env, "the begin of a loop");
  std::optional<int64_t> end = begin ? evaluator.evaluateInteger(loop->end, env, "the end of a loop") : std::nullopt;
  if (!end)
    return false;
  evaluator.getObligations().noteChoice(loop->loc(), *begin < *end);
  for (int64_t i = *begin; i < *end; ++i) {
    Environment inner(env);
    inner.define(loop->variable.name, CTValue::integer(i));
    if (!evaluator.step() || !runBody(loop->body, inner))
      return false;
  }
  return true;
}

bool ScheduleRunner::runVirtual(const ast::VirtualStmt *stmt, const Environment &env) {
  std::optional<int64_t> count = evaluator.evaluateInteger(stmt->count, env, "the number of virtual stages");
  if (!count)
    return false;
  if (*count < 1 || *count > maxChunks)
    return fail(stmt->count->range, diag::VirtualStageCount, maxChunks, *count);
  if (numUnits || sawVirtual)
    return fail(stmt->range, diag::VirtualTwice);
  if (stage != 0 && *count != result.chunks)
    return fail(stmt->range, diag::VirtualStagesDiffer, result.chunks, *count);
  sawVirtual = true;
  placement = stmt;
  result.chunks = *count;
  result.chunksOrigin = getOrigin(stmt->count, env);
  if (!stmt->place)
    return true;
  std::vector<int64_t> &places = result.virtualStages.emplace_back();
  for (int64_t c = 0; c != *count; ++c) {
    Environment inner(env);
    inner.define("c", CTValue::integer(c));
    std::optional<int64_t> place = evaluator.evaluateInteger(stmt->place, inner, "a virtual stage");
    if (!place)
      return false;
    places.push_back(*place);
  }
  return true;
}

/// Every virtual stage must have one place; or one for each copy of the model, of which the first has the first chunks
/// of all stages. Without an `at`, chunk c of stage r is virtual stage c * p + r.
bool ScheduleRunner::checkPlacement() {
  if (result.virtualStages.empty()) {
    for (int64_t r = 0; r != stages; ++r) {
      std::vector<int64_t> &places = result.virtualStages.emplace_back();
      for (int64_t c = 0; c != result.chunks; ++c)
        places.push_back(c * stages + r);
    }
    return true;
  }
  if (int64_t(result.virtualStages.size()) != stages)
    return fail(placement->range, diag::VirtualStagesOfSome);
  int64_t total = stages * result.chunks, last = 0;
  for (const std::vector<int64_t> &places : result.virtualStages)
    for (int64_t place : places) {
      if (place < 0 || place >= total)
        return fail(placement->place->range, diag::NoSuchVirtualStage, place, total - 1);
      last = std::max(last, place);
    }
  if (total % (last + 1) == 0 && result.chunks % (total / (last + 1)) == 0)
    result.copies = total / (last + 1);
  int64_t chunks = result.chunks / result.copies;
  std::vector<bool> taken(total, false);
  for (const std::vector<int64_t> &places : result.virtualStages)
    for (int64_t c = 0; c != result.chunks; ++c) {
      size_t number = c / chunks * stages * chunks + places[c];
      if (taken[number])
        return fail(placement->place->range, diag::VirtualStageTwice, places[c]);
      taken[number] = true;
    }
  return true;
}

bool ScheduleRunner::runCall(const ast::CallExpr *call, const Environment &env) {
  StringRef name = llvm::cast<ast::NameExpr>(call->callee)->name;
  if (name == listWord)
    return runList(call);
  if (auto units = readOverlap(call)) // two calls: CheckRules saw to that
    return llvm::all_of(*units,
                        [&](const ast::Expr *unit) {
                          auto *inner = llvm::cast<ast::CallExpr>(unit);
                          return runUnit(*getUnitKind(llvm::cast<ast::NameExpr>(inner->callee)->name), inner, env);
                        }) &&
           pairUp(call->range);
  if (std::optional<PhaseKind> kind = getUnitKind(name))
    return runUnit(*kind, call, env);
  return runOther(call, env);
}

/// `interleaved(p, m, r, v = 2);`: what that schedule says stands here.
bool ScheduleRunner::runOther(const ast::CallExpr *call, const Environment &env) {
  std::optional<CTValue> value = evaluator.evaluate(call, env);
  if (!value)
    return false;
  auto &other = llvm::cast<ast::ScheduleDecl>(*value->getDecl()); // CheckRules saw to that
  if (llvm::is_contained(running, &other))
    return fail(call->range, diag::ScheduleRunsItself, other.name.name);
  Environment inner(evaluator.getProgram().getFile(other));
  if (!bindParams(other.params, value->getArguments(), other, call->range, inner))
    return false;
  running.push_back(&other);
  bool isGood = runBody(other.body, inner);
  running.pop_back();
  return isGood;
}

bool ScheduleRunner::runUnit(PhaseKind kind, const ast::CallExpr *call, const Environment &env) {
  int64_t numbers[2] = {0, 0};
  if (call->args.empty() || call->args.size() > 2) {
    diags.report(call->loc(), diag::WrongArgumentCount).range(call->range)
        << llvm::cast<ast::NameExpr>(call->callee)->name << "a microbatch and, with virtual stages, a chunk as"
        << int64_t(call->args.size());
    return false;
  }
  for (size_t i = 0; i != call->args.size(); ++i) {
    std::optional<int64_t> number =
        evaluator.evaluateInteger(call->args[i].value, env, i == 0 ? "a microbatch" : "a chunk");
    if (!number)
      return false;
    numbers[i] = *number;
  }
  return addUnit(kind, numbers[0], numbers[1], call->range);
}

bool ScheduleRunner::addUnit(PhaseKind kind, int64_t microbatch, int64_t chunk, SMRange range) {
  if (microbatch < 0 || microbatch >= microbatches)
    return fail(range, diag::NoSuchMicrobatch, microbatch, microbatches - 1);
  if (chunk < 0 || chunk >= result.chunks)
    return fail(range, diag::NoSuchChunk, chunk, result.chunks - 1);
  if (numUnits++ / kindsPerMicrobatch / result.chunks >= microbatches)
    return fail(range, diag::ScheduleTooManyUnits, stage);
  result.units.back().push_back({kind, unsigned(microbatch), unsigned(chunk), isOfUser ? range.Start : SMLoc()});
  return true;
}

/// The last two units run interleaved.
bool ScheduleRunner::pairUp(SMRange range) {
  std::vector<Unit> &units = result.units.back();
  Unit &first = units[units.size() - 2];
  first.overlapsNext = true;
  first.loc = isOfUser ? range.Start : SMLoc();
  return true;
}

/// `list([[F0, B0], [F0, B0]])`: one list per stage. With virtual stages a unit is `F(microbatch, chunk)`.
bool ScheduleRunner::runList(const ast::CallExpr *call) {
  auto *lists = call->args.size() == 1 ? dyn_cast<ast::ListExpr>(call->args[0].value) : nullptr;
  if (!lists)
    return fail(call->range, diag::ScheduleListMissing);
  if (int64_t(lists->elements.size()) != stages)
    return fail(lists->range, diag::ScheduleListStages, lists->elements.size(), stages);
  auto *mine = dyn_cast<ast::ListExpr>(lists->elements[stage]);
  if (!mine)
    return fail(lists->elements[stage]->range, diag::ScheduleListStage);
  auto add = [&](const ast::Expr *unit) {
    std::optional<ListedUnit> listed = readListedUnit(unit);
    if (!listed)
      return fail(unit->range, diag::ScheduleListUnit);
    return evaluator.step() && addUnit(listed->kind, listed->microbatch, listed->chunk, unit->range);
  };
  for (const ast::Expr *unit : mine->elements) {
    auto paired = readOverlap(unit);
    if (paired && paired->size() != 2)
      return fail(unit->range, diag::ScheduleListUnit);
    if (paired ? !llvm::all_of(*paired, add) || !pairUp(unit->range) : !add(unit))
      return false;
  }
  return true;
}

std::vector<unsigned> BoundSchedule::getPlacement() const {
  int64_t chunksPerCopy = chunks / copies, stages = virtualStages.size();
  std::vector<unsigned> placement;
  for (int64_t chunk = 0; chunk < chunks; ++chunk)
    for (const std::vector<int64_t> &ofStage : virtualStages)
      placement.push_back(chunk / chunksPerCopy * chunksPerCopy * stages + ofStage[chunk]);
  return placement;
}

const Kept<BoundSchedule> &KeptBindings::keepSchedule(llvm::StringRef key, Kept<BoundSchedule> schedule) {
  constexpr size_t maxUnits = 1'000'000;
  size_t more = 0;
  for (const std::vector<Unit> &units : schedule.bound.units)
    more += units.size();
  if (numUnits + more > maxUnits) {
    schedules.clear();
    numUnits = 0;
  }
  numUnits += more;
  return schedules.try_emplace(key, std::move(schedule)).first->second;
}

/// What decides a run. False if an argument is no plain value.
static bool describeRun(const ast::ScheduleDecl &schedule, int64_t stages, int64_t microbatches,
                        ArrayRef<NamedValue> args, const SizeContext &sizes, std::string &key) {
  llvm::raw_string_ostream text(key);
  text << &schedule << ' ' << &sizes << ' ' << stages << ' ' << microbatches;
  for (const NamedValue &arg : args) {
    std::optional<int64_t> number = arg.value.getInteger();
    if (!number && !arg.value.isBool())
      return false;
    text << ' ' << arg.name.name << '=' << (number ? std::to_string(*number) : arg.value.getBool() ? "true" : "false");
  }
  return true;
}

void stage::sema::repeat(const Obligations &noted, Obligations &obligations) {
  for (const Obligations::Obligation &owed : noted.all())
    obligations.add(owed.kind, owed.left, owed.right, owed.loc, owed.reason);
  for (const Obligations::Obligation &decision : noted.getDecisions())
    obligations.noteDecision(decision.left, decision.loc, decision.reason);
  for (auto [place, alternatives] : noted.getChoices())
    for (unsigned alternative = 0; alternative < 64; ++alternative)
      if (alternatives >> alternative & 1)
        obligations.noteChoice(SMLoc::getFromPointer(place), alternative);
}

std::optional<BoundSchedule> stage::sema::runSchedule(Evaluator &evaluator, const ast::ScheduleDecl &schedule,
                                                      int64_t stages, int64_t microbatches, ArrayRef<NamedValue> args,
                                                      SMRange usedAt) {
  std::string key;
  if (!describeRun(schedule, stages, microbatches, args, evaluator.getSizes(), key))
    return ScheduleRunner(evaluator, schedule, stages, microbatches, usedAt).run(args);
  KeptBindings &known = evaluator.getProgram().getBindings();
  const Kept<BoundSchedule> *run = known.findSchedule(key);
  if (!run) {
    Kept<BoundSchedule> made;
    Evaluator own(evaluator.getProgram(), evaluator.getSizes(), evaluator.getBinding(), made.obligations,
                  evaluator.getDiags());
    auto bound = ScheduleRunner(own, schedule, stages, microbatches, usedAt).run(args);
    if (!bound)
      return std::nullopt;
    made.bound = std::move(*bound);
    run = &known.keepSchedule(key, std::move(made));
  }
  run->repeat(evaluator.getObligations());
  return run->bound;
}
