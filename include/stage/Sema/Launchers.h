//===- Launchers.h - a strategy as arguments of a framework ----*- C++ -*-===//
//
// Problem: a plan runs under Megatron-LM, DeepSpeed or vLLM, whose arguments say it in other words. A program that is
// copied by hand from one to the other is wrong in one of them soon.
//
//   launcher megatron_lm for megatron {
//     "--tensor-model-parallel-size" = tp;                    a value
//     "--ddp-bucket-size" = bucket / 4B if bucket != none;    a value in another unit, written where a condition holds
//     "--use-distributed-optimizer" if zero >= 1;             a flag alone
//     "--cp-comm-type=all_gather" if !ring;                   one value of a flag
//     "--recompute-modules[mlp]" if mlp;                      one element of a flag that has a list: [mlp,moe]
//     "--sizes[0]" = a2a;                                     the first element of a list of values: --sizes 2 4
//     "--vp" = order.v if order == interleaved;               an argument of a value: order = interleaved(v = 2)
//     "--seq-length" = train.S;                               a value of the job, not of the strategy
//     "--lr" ignored;                                         no plan depends on it
//   }
//
//   read    --tensor-model-parallel-size 8 --use-distributed-optimizer  ->  tp = 8, zero = 1, ring = true
//   write   tp = 8, zero = 1, ring = true                               ->  the same flags
//
// Invariants, which the checks of a declaration establish:
//
//   * Each flag is about one parameter, and a value follows from its number alone: p, p * c, p / c.
//   * No value of a parameter is written by two flags at once, so that flags cannot contradict each other unnoticed.
//   * Reading picks a value that is written as exactly the flags that were read. So flags -> values -> flags is the
//     identity, and what no value is written as is a fault. Values that are written alike, such as zero = 2, are not:
//     write() refuses them, because reading its flags would give another value.
//
// Values of the job are parameters, too: `train.B` and `infer.B` of its step, `Llama.L` of its model, and `job.config`,
// `job.precision`, `job.machine`, `job.runtime` and `job.gpus`. They have no default: without a flag nothing is said.
//
// Limits: whole numbers, words, truth values, and declarations with one argument at most; of lists, elements that the
// launcher names.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_SEMA_LAUNCHERS_H
#define STAGE_SEMA_LAUNCHERS_H

#include "stage/Sema/Evaluator.h"

namespace stage::sema {

/// The norm to which a step clips its gradients; frameworks say 0 where nothing is clipped.
constexpr llvm::StringRef clipParam = "train.clip";

/// A flag of a launcher, one value of a flag, `--cp-comm-type=p2p`, an element of its list, `--modules[mlp]`, or a
/// place of its list that has a value, `--sizes[0]`.
struct LauncherFlag {
  /// How the number of a flag follows from the parameter. None: the flag has no number.
  enum class Scale { None, Plain, Times, Over };
  /// What must hold of the parameter where the flag is written.
  enum class Test { Always, IsTrue, IsFalse, Equals, Differs, AtLeast, Above };

  const ast::FlagStmt *stmt;
  const ast::StringExpr *text;    ///< Of the statement, which may ignore several.
  StringRef key;                  ///< The text up to `=` or `[`.
  std::optional<StringRef> value; ///< The text behind `=`, or in brackets; nothing: there is none.
  bool isElement = false;         ///< The value stands in brackets.
  std::optional<unsigned> param;  ///< Of Launcher::getParams(); nothing: the flag is ignored.
  StringRef argument;             ///< The value is this argument of the parameter's value; empty: the value itself.
  Scale scale = Scale::None;
  Rational factor = Rational::integer(1); ///< Of Times and Over; in base units, not 0.
  Dimension unit;                         ///< Of the factor.
  Test test = Test::Always;
  const ast::Expr *constant = nullptr; ///< With which the parameter is compared; null: with none.
};

/// A launcher whose declaration is sound. The program must outlive it.
class Launcher {
public:
  /// Nothing after a report.
  static std::optional<Launcher> make(const Program &program, const ast::LauncherDecl &decl);

  StringRef getName() const { return decl->name.name; }
  const ast::StrategyDecl &getStrategy() const { return *strategy; }
  const ast::File &getFile() const { return program->getFile(*decl); }
  /// Of the strategy, then what flags say of the job, by qualified names: `train.B`.
  ArrayRef<const ast::Param *> getParams() const { return params; }
  bool isOfJob(unsigned param) const { return param >= strategy->params.size(); }
  /// Some flag is about the parameter.
  bool says(StringRef param) const;
  /// The flags about a parameter, for messages: `'--bf16', '--fp16'`.
  std::string listFlags(StringRef param) const;
  bool hasKey(StringRef key) const { return isKey(key); }
  /// Each flag with this key is a word alone.
  bool isSwitch(StringRef key) const;
  /// The value of the flag is a list.
  bool isList(StringRef key) const;
  /// The text of the flag that says a value of a parameter by a condition `p == value`; empty: none does.
  std::string getFlagText(Evaluator &evaluator, StringRef param, const CTValue &value) const;

  /// The arguments of the strategy that are written as these words: `--tp 8`, `--tp=8`. A parameter that the words
  /// leave at its default is not among them. Flags that the launcher ignores are skipped, each with the word behind it
  /// that is no flag. Nothing after a report. `places`: where the words stand, if they stand anywhere. `ignored` gets
  /// the flags that were skipped.
  std::optional<std::vector<NamedValue>> read(Evaluator &evaluator, ArrayRef<std::string> words,
                                              ArrayRef<SMLoc> places = {},
                                              std::vector<std::string> *ignored = nullptr) const;
  /// The words that say these arguments, in the order of the launcher. Reading them gives the arguments back, except
  /// for parameters that are said in another way, such as by the number of ranks. Nothing after a report.
  std::optional<std::vector<std::string>> write(Evaluator &evaluator, ArrayRef<NamedValue> arguments,
                                                ArrayRef<StringRef> saidElsewhere = {}) const;

  /// A parameter with a value that the words do not say.
  struct Unsaid {
    unsigned param;
    CTValue value;
    std::optional<CTValue> read; ///< What the words say instead; nothing: nothing.
  };
  /// The words that say these arguments as far as flags can, and the rest. Nothing after a report.
  struct Written {
    std::vector<std::string> words;
    std::vector<Unsaid> unsaid;
  };
  std::optional<Written> writeKnown(Evaluator &evaluator, ArrayRef<NamedValue> arguments) const;

private:
  friend class LauncherChecker;
  /// By parameter its value; nothing: it has none, because it needs an argument.
  using Values = std::vector<std::optional<CTValue>>;
  /// The value of a flag as it was read, empty where it has none.
  struct SeenFlag {
    std::string text;
    SMLoc loc;
  };
  /// By flag; nothing: the flag was not read.
  using Seen = std::vector<std::optional<SeenFlag>>;
  /// Values of a parameter, in order.
  struct Candidates {
    std::vector<CTValue> values;
    bool areAll = false; ///< Otherwise those that the conditions of its flags name.
  };

  Launcher(const Program &program, const ast::LauncherDecl &decl, const ast::StrategyDecl &strategy)
      : program(&program), decl(&decl), strategy(&strategy) {
    for (const ast::Param &param : strategy.params)
      params.push_back(&param);
  }

  /// `interleaved(v = 2)` is not `interleaved`.
  static bool isSame(Evaluator &evaluator, const CTValue &a, const CTValue &b);
  const ast::Param &getParam(const LauncherFlag &flag) const { return *params[*flag.param]; }
  /// Where the names of its values are declared.
  const ast::File &getFile(unsigned param) const { return isOfJob(param) ? getFile() : program->getFile(*strategy); }
  std::vector<const LauncherFlag *> getFlags(unsigned param) const;
  bool isKey(StringRef word) const;
  SMRange findPlace(unsigned param, const Seen &seen) const;
  std::vector<Candidate> getKeys() const;
  /// The other launchers of the file that have a key, as options; empty: none.
  std::string listOthersWith(StringRef key) const;
  /// Whether the flag is written where its parameter has this value.
  bool holds(Evaluator &evaluator, const LauncherFlag &flag, const CTValue &value) const;
  /// Of the parameter's legal values, or else of its flags.
  Candidates getCandidates(Evaluator &silent, unsigned param) const;
  /// The default value; nothing if there is none, or if other parameters decide it that have no value yet.
  std::optional<CTValue> getDefault(Evaluator &silent, unsigned param, const Environment &callee) const;

  std::optional<Seen> match(ArrayRef<std::string> words, ArrayRef<SMLoc> places, std::vector<std::string> *ignored,
                            DiagnosticEngine &diags) const;
  bool matchValue(StringRef key, std::optional<StringRef> value, SMLoc loc, Seen &seen, DiagnosticEngine &diags) const;
  bool matchElements(StringRef key, StringRef list, SMLoc loc, Seen &seen, DiagnosticEngine &diags) const;
  std::optional<CTValue> parse(Evaluator &evaluator, const LauncherFlag &flag, const SeenFlag &seen) const;
  bool isNumber(Evaluator &silent, unsigned param) const;
  void reportDecl(Evaluator &evaluator, const LauncherFlag &flag, const SeenFlag &seen) const;
  void reportValue(Evaluator &evaluator, const LauncherFlag &flag, const SeenFlag &seen) const;
  std::optional<CTValue> parseWord(Evaluator &evaluator, unsigned param, StringRef text) const;
  /// False after a report; `value` is nothing where the parameter has its default.
  /// `begin`: where the words begin.
  bool readParam(Evaluator &evaluator, unsigned param, const Seen &seen, const std::optional<CTValue> &defaultValue,
                 SMLoc begin, std::optional<CTValue> &value) const;
  bool agrees(Evaluator &evaluator, unsigned param, const CTValue &value, const Seen &seen) const;
  std::string describeConfig(const Seen &seen) const;
  void reportContradiction(Evaluator &evaluator, unsigned param, const Seen &seen, SMLoc begin) const;

  /// All parameters with these arguments. Nothing after a report.
  std::optional<Values> bind(Evaluator &evaluator, ArrayRef<NamedValue> arguments) const;
  /// Whether an argument is given.
  bool isGiven(unsigned param, ArrayRef<NamedValue> arguments) const;
  /// The words of these values, but for those of `left`. Nothing after a report.
  std::optional<std::vector<std::string>> compose(Evaluator &evaluator, ArrayRef<NamedValue> arguments,
                                                  const Values &values, ArrayRef<unsigned> left) const;
  /// What the words do not say. They may contradict each other; then flags without a number are to blame.
  std::vector<Unsaid> findUnsaid(Evaluator &evaluator, ArrayRef<NamedValue> arguments, const Values &values,
                                 ArrayRef<std::string> words) const;
  /// The number or word of a flag; nothing (unreported) if the value has none.
  std::optional<std::string> print(Evaluator &evaluator, const LauncherFlag &flag, const CTValue &value) const;

  const Program *program;
  const ast::LauncherDecl *decl;
  const ast::StrategyDecl *strategy;
  std::vector<const ast::Param *> params;
  std::vector<LauncherFlag> flags;
};

/// Evaluates without messages: for values that need not exist.
class SilentEvaluator {
public:
  SilentEvaluator(const Program &program, SizeContext &sizes, const SizeBinding &binding)
      : diags(program.getDiags().getSources()), evaluator(program, sizes, binding, obligations, diags) {}
  SilentEvaluator(const SilentEvaluator &) = delete;
  Evaluator &get() { return evaluator; }

private:
  DiagnosticEngine diags;
  Obligations obligations;
  Evaluator evaluator;
};

} // namespace stage::sema

#endif // STAGE_SEMA_LAUNCHERS_H
