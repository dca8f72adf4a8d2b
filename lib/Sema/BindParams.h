//===- BindParams.h - values for what a job calls --------------*- C++ -*-===//
//
//   model    = Llama(llama3_8b, F = 4 * D);
//   strategy = megatron(pp = 4, tp = 8, dp = 512 / (pp * tp));
//
// Each parameter has one expression that is in effect: of a -D, the call, a config, or
// its default. It may refer to the other parameters, whatever their order: they are
// evaluated in the order of their dependencies. A value that needs itself is an error.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_SEMA_BINDPARAMS_H
#define STAGE_LIB_SEMA_BINDPARAMS_H

#include "Overrides.h"

namespace stage::sema {

/// An argument of a call in a job: an expression that may refer to the other parameters, or (no expression) a value.
struct JobArgument {
  ast::Ident name; ///< Empty: positional.
  const ast::Expr *expr = nullptr;
  CTValue value;
  SMRange range;
};

/// `megatron(...)` in a job, before its arguments are evaluated.
struct JobCall {
  CTValue callee; ///< The declaration.
  const ast::Expr *expr = nullptr;
  const ast::File *file = nullptr;
  std::vector<JobArgument> arguments;
};

class ParamBinder {
public:
  /// `file` declares the parameters; `callRange` is where `callee` is called.
  ParamBinder(Evaluator &evaluator, const ast::Decl &callee, ArrayRef<ast::Param> params, SMRange callRange);
  virtual ~ParamBinder() = default;

  std::optional<size_t> find(StringRef name) const;
  /// What is given later is in effect.
  void give(size_t index, const ast::Expr *expr, const ast::File &file);
  void give(size_t index, const JobArgument &argument, const ast::File &file);
  /// The values that -D gives to parameters of `owner`.
  void give(const Overrides &overrides, StringRef owner);
  /// The arguments of a call. Those that no parameter takes are reported, and give false.
  bool give(ArrayRef<JobArgument> arguments, const ast::File &file);

  /// A name that arguments may use besides the parameters.
  void define(StringRef name, int64_t value) { others.push_back({name, value}); }

  /// Evaluates all parameters that are given or have a default. Faults, absent ones included, are reported.
  bool bindAll();
  /// In the order of the parameters.
  std::vector<NamedValue> take() const;
  /// Whether each is given, in the order of the parameters.
  std::vector<bool> listGiven() const;

protected:
  struct Slot {
    enum class State { Waiting, Active, Bound, Failed } state = State::Waiting;
    bool isGiven = false;
    const ast::Expr *expr = nullptr; ///< In `file`. Null: `value` is given.
    const ast::File *file = nullptr;
    CTValue value;
    SMRange range;
  };
  /// Checks and perhaps replaces the slot's value, which has the kind of its parameter.
  virtual bool finish(size_t index) { return true; }

  Evaluator &evaluator;
  DiagnosticEngine &diags;
  const ast::Decl &callee;
  ArrayRef<ast::Param> params;
  SMRange callRange;
  const ast::ConfigDecl *config = nullptr; ///< Of a model: what gives its sizes, if anything does.
  bool saysMissing = false;                ///< Parameters without a value were reported.
  std::vector<Slot> slots;

private:
  bool bind(size_t index);
  bool evaluate(size_t index);
  llvm::SmallVector<std::pair<StringRef, int64_t>, 1> others;
};

} // namespace stage::sema

#endif // STAGE_LIB_SEMA_BINDPARAMS_H
