//===- JobBinder.h - a job while its names are bound -----------*- C++ -*-===//
//
// BindJob.cpp has the order in which entries are bound, and binds all but the step, which BindStep.cpp does.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_SEMA_JOBBINDER_H
#define STAGE_LIB_SEMA_JOBBINDER_H

#include "BindModel.h"
#include "JobWords.h"
#include "stage/Sema/Arguments.h"
#include "stage/Sema/Diagnostics.h"
#include "stage/Sema/KeptBindings.h"
#include "stage/Sema/Suggestions.h"

namespace stage::sema {

/// Binds one job, once.
class JobBinder {
public:
  JobBinder(Program &program, ArrayRef<Override> defines, SizeContext &sizes, SizeBinding &binding,
            Obligations &obligations, DiagnosticEngine &diags, std::optional<int64_t> batchRanks)
      : program(program), sizes(sizes), binding(binding), diags(diags), knownBatchRanks(batchRanks),
        evaluator(program, sizes, binding, obligations, diags), overrides(program, defines, diags) {}

  bool selectJob(StringRef name);
  bool bind();
  BoundJob job;

private:
  /// An entry of the job in effect, or what a -D puts in its place.
  struct Entry {
    const ast::Expr *value = nullptr;
    const ast::File *file = nullptr;
  };

  void readEntries();
  bool chooseParts();
  void resolveOverrides();
  std::optional<CTValue> evaluateEntry(StringRef name);
  std::optional<JobCall> readCall(const Entry &entry);
  bool bindStrategyEntry();
  bool bindGpus(ParamBinder &params);
  void warnOfPositions(const ast::StrategyDecl &decl);
  bool bindPrecision();
  template <typename Bound, typename Bind>
  bool bindOnce(std::map<KeptBindings::Key, Kept<Bound>> &kept, StringRef word, const ast::Decl *decl, Bind bindAs,
                std::optional<Bound> &bound);
  bool checkSymbols();
  template <typename Kind> const Kind *expectDecl(const CTValue &value, SMRange range, StringRef what);
  template <typename Kind> bool chooseDecl(StringRef word, StringRef what, const Kind *&chosen);

  // BindStep.cpp:
  bool bindStep();
  std::vector<ast::Ident> getStepDims() const;
  ArrayRef<StringRef> getStepWords() const;
  bool bindStepDim(const ast::Ident &dim, const ast::Expr *value, const Environment &env);
  bool bindBatch(const ast::Ident &dim, std::optional<int64_t> given, SMRange range);
  bool bindDraft(const ast::Expr &value, const Environment &env);
  bool bindLengthsOfStep(const ast::Expr &value, const Environment &env, bool &servesRequests,
                         std::vector<int64_t> &lengths);
  bool bindClip(const ast::Expr &expr, const Environment &env);
  bool bindOptimizer(const ast::Expr *value, const Environment &env);

  Program &program;
  SizeContext &sizes;
  SizeBinding &binding;
  DiagnosticEngine &diags;
  std::optional<int64_t> knownBatchRanks; ///< From an earlier attempt.
  SMRange microbatchRange;                ///< Invalid: the step gives none.
  Evaluator evaluator;
  Overrides overrides;
  llvm::StringMap<Entry> entries;
  Entry gpus; ///< What the search of the job says of them; no value: nothing.
  JobCall model, strategy;
  const ast::MachineDecl *machine = nullptr;
  const ast::RuntimeDecl *runtime = nullptr;
  ArrayRef<ast::Expr *> addedParts; ///< `with ...`
  const ast::CallExpr *step = nullptr;
};

/// The declaration that a value names. Null after a report.
template <typename Kind> const Kind *JobBinder::expectDecl(const CTValue &value, SMRange range, StringRef what) {
  auto *decl = value.isDecl() ? llvm::dyn_cast<Kind>(value.getDecl()) : nullptr;
  if (decl)
    return decl;
  DiagnosticBuilder error = diags.report(range.Start, diag::WrongKind).range(range) << what << evaluator.format(value);
  if (value.getKind() == CTValue::Kind::String)
    error.note(SMLoc(), diag::NamesHaveNoQuotes);
  auto *config = value.isDecl() ? llvm::dyn_cast<ast::ConfigDecl>(value.getDecl()) : nullptr;
  StringRef kind = what.split(' ').second; // "a model"
  if (config && kind == modelWord)
    error.note(config->name.loc(), diag::ConfigIsForModel) << config->model.name << config->name.name;
  else
    program.suggestOfKind(error, evaluator.format(value), range, kind, program.getFile(*job.decl));
  return nullptr;
}

} // namespace stage::sema

#endif // STAGE_LIB_SEMA_JOBBINDER_H
