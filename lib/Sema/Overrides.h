//===- Overrides.h - the -D options of the command line --------*- C++ -*-===//
//
// `-D name=value` gives a named value of the job, its config, its step or its
// strategy another value. What can be named is known once the job is selected:
//
//   -D tp=4             the one value called tp
//   -D strategy.tp=4    where several are called so: job., step., config., strategy.
//
// A define that fits nothing, or several, is an error: none is ever ignored.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_SEMA_OVERRIDES_H
#define STAGE_LIB_SEMA_OVERRIDES_H

#include "stage/Sema/Job.h"

namespace stage::sema {

class Overrides {
public:
  /// A value that can be named, and where it is declared.
  struct Target {
    StringRef owner;
    StringRef name;
    SMLoc loc;
  };

  /// Parses the values. Faults are reported.
  Overrides(Program &program, ArrayRef<Override> defines, DiagnosticEngine &diags);
  bool isValid() const { return valid; }

  /// Decides which target each define means that is not decided yet. With `isLast` a define that fits none is reported.
  void resolve(ArrayRef<Target> targets, bool isLast);
  /// The value for a target; null if there is none.
  const ast::Expr *find(StringRef owner, StringRef name) const;
  /// What is given for an owner, in the order of the command line.
  std::vector<std::pair<StringRef, const ast::Expr *>> listValues(StringRef owner) const;
  /// Where values are evaluated: the main file.
  const Environment &getEnvironment() const { return env; }

private:
  struct Define {
    StringRef name;
    const ast::Expr *value = nullptr;
    SMRange range;
    StringRef owner, target; ///< Once decided.
  };
  void explainUnknown(DiagnosticBuilder &error, const Define &define, StringRef last, ArrayRef<Target> targets,
                      ArrayRef<Candidate> candidates);
  void reportAmbiguous(const Define &define, ArrayRef<Target> fitting);

  const Program &program;
  DiagnosticEngine &diags;
  Environment env;
  std::vector<Define> list;
  bool valid = true;
};

/// `-D tp=1..8`: reports a range in place of numbers to compare. An invalid `place`: that of no value.
void reportRangeOfValues(DiagnosticEngine &diags, SMRange place, StringRef name);

} // namespace stage::sema

#endif // STAGE_LIB_SEMA_OVERRIDES_H
