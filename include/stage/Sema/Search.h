//===- Search.h - the plans that a job leaves open --------------*- C++ -*-===//
//
// Problem: which values may a plan have, and which of them exclude each other, before anything is compiled?
//
//   search {
//     gpus = 64;                            strategy = megatron(pp = 1, dp = gpus / (pp * tp), tp = 1);
//     tp in [1, 2, 4];
//     pp in divisors(layers);               `layers`: the iterations of a repeat of the model
//     require tp <= machine.levels[0].ranks, "tensor ranks within a node";
//     require memory <= 0.9 * machine.memory.capacity;
//     objective = tokens_per_gpu;
//   }
//
// A candidate has one value of each list. `gpus`, where it is said, is the number of ranks of every candidate: one
// degree follows from it, here dp. Requirements that ask for values alone are decided in a microsecond; those that ask
// for a record (`memory`, `step`) are decided by the report of the plan.
//
// The block of a job counts, and that of the job that it extends where it has none; what the strategy's own block says
// of other names is added, and so are its requirements.
//
// A search may try several strategies, and each of them has a space of its own:
//
//     strategy in [megatron(dp = gpus / (pp * tp), pp = 1, tp = 1), fsdp(dp = gpus)];
//     tp in [1, 2, 4];                      of megatron; fsdp has no 'tp', and its space does not get larger by it
//
// Names that a strategy does not have, values that its parameter cannot have, and requirements about such names are no
// part of its space.
//
// Limits: expressions are of numbers, words, comparisons and `if`, and of what the evaluator makes a constant of. The
// ranks of a strategy whose mesh stands in a part that it calls are not known here.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_SEMA_SEARCH_H
#define STAGE_SEMA_SEARCH_H

#include "stage/Sema/Job.h"

namespace stage::sema {

/// What a compiled plan has, by which plans are ranked and about which requirements ask.
struct SearchRecord {
  StringRef name;
  bool isMost; ///< The best plan has most of it, not least.
};
/// `step`, `tokens_per_gpu`, `memory`, ...
ArrayRef<SearchRecord> getSearchRecords();
/// Its number among these; nothing: there is none of that name.
std::optional<unsigned> findSearchRecord(StringRef name);

/// A value of a candidate: a number, also of a truth value, or a word.
struct CandidateValue {
  Rational number;
  unsigned word = 0; ///< Above 0: a word of BoundSearch, and no number.
  bool isTrue() const { return !word && number.num != 0; }
  bool operator==(const CandidateValue &other) const { return word == other.word && (word || number == other.number); }
};

/// An expression over the values of a candidate.
class CandidateExpr {
public:
  /// `slots`: those of BoundSearch. Nothing: it has no value, as 1 / 0.
  std::optional<CandidateValue> evaluate(ArrayRef<CandidateValue> slots) const;
  /// Some slot from this one on decides it.
  bool usesFrom(unsigned slot) const;

private:
  friend class CandidateCompiler;
  enum class Op : uint8_t { Constant, Slot, Negate, Not, If, Min, Max, CeilDiv, Binary };
  struct Node {
    Op op;
    ast::BinaryOp binary = ast::BinaryOp::Add;
    unsigned slot = 0;
    CandidateValue value;
    unsigned operands[3] = {};
  };
  std::optional<CandidateValue> evaluate(const Node &node, ArrayRef<CandidateValue> slots) const;
  std::vector<Node> nodes; ///< Operands before what uses them; the last one is the expression.
};

/// One of the values that a name is given in turn.
struct SearchedValue {
  OverrideValue given;
  CandidateValue value;
  std::string getText() const { return given.getSpelling(); }
};
/// `tp in [1, 2, 4]`
struct SearchedName {
  std::string name;
  StringRef owner; ///< `strategy`, `step`, `config`; of `gpus` `job`; empty: an entry of the machine, for example.
  std::vector<SearchedValue> values;
  SMRange range;
  std::string getQualified() const { return owner.empty() ? name : (owner + "." + name).str(); }
};
/// `dp = gpus / (pp * tp)`
struct FollowingName {
  std::string name;
  std::string formula;
  SMRange range; ///< Of the formula, if the job has it.
  CandidateExpr value;
  bool isSaid = false; ///< The job computes it by itself.
};
struct SearchRequirement {
  std::string text; ///< Its message, or the condition as it is written.
  SMRange range;
  CandidateExpr condition;
  bool needsReport = false;
  bool isOne = false; ///< It holds where the value is 1, whatever else is true.
  /// Of `memory <= e`: e.
  std::optional<CandidateExpr> mostMemory;
};

/// One of `strategy in [megatron(tp = 1), fsdp(dp = gpus)];`
struct SearchedStrategy {
  const ast::Expr *value = nullptr; ///< Null: the strategy of the job, and no other one is tried.
  const ast::File *file = nullptr;
  std::string text;  ///< As the program writes it, for `job.strategy`.
  std::string label; ///< The name of the strategy, or the text if several have this name.
};

struct BoundSearch {
  SearchedStrategy strategy;
  std::vector<SearchedName> names;
  std::vector<FollowingName> following;
  std::vector<SearchRequirement> requirements;
  llvm::SmallVector<unsigned, 2> objectives; ///< Records: one, or two of a front.
  std::vector<std::string> words;            ///< From 1 on.
  /// Slots: names, those that follow, records.
  unsigned getFirstRecord() const { return names.size() + following.size(); }
  unsigned countSlots() const { return getFirstRecord() + getSearchRecords().size(); }
};

/// A list of values in place of the program's: `-D tp=1,2,4`.
struct SearchChange {
  std::string name;
  std::vector<OverrideValue> values;
};

/// The strategies that a search tries: those of the command line (`-D strategy=...`), or those that the block of the
/// job lists. None: it tries that of the job. Nothing after a report.
std::optional<std::vector<SearchedStrategy>> findSearchedStrategies(Program &program, const ast::JobDecl &job,
                                                                    ArrayRef<SearchChange> changes,
                                                                    DiagnosticEngine &diags);

/// The parameters, dims and words of a step that a search may name, and whose they are. Empty: there is none. Of
/// several strategies the first one that has the name says that.
StringRef findSearchOwner(const Program &program, const ast::JobDecl &job, StringRef name,
                          ArrayRef<SearchedStrategy> strategies);

/// Binds what a search of a job goes through, for each strategy that it tries. `model`: the job on one rank, bound.
/// `countIterations`: of a repeat of the model, nothing if it has none of that name. Nothing after a report.
std::optional<std::vector<BoundSearch>>
bindSearch(Program &program, const BoundJob &model, ArrayRef<SearchedStrategy> strategies,
           ArrayRef<SearchChange> changes, SizeContext &sizes, const SizeBinding &binding,
           llvm::function_ref<std::optional<int64_t>(StringRef)> countIterations, DiagnosticEngine &diags);

/// The program of the main file with one job, which has these values (by name, owner and text) and searches nothing.
/// Nothing after a report.
struct WrittenValue {
  std::string name;
  StringRef owner;
  std::string text;
};
std::optional<std::string> writeJob(Program &program, const ast::JobDecl &job, const SearchedStrategy &strategy,
                                    ArrayRef<WrittenValue> values, DiagnosticEngine &diags);

} // namespace stage::sema

#endif // STAGE_SEMA_SEARCH_H
