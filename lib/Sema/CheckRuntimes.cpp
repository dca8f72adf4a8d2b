//===- CheckRuntimes.cpp - the names of runtimes --------------------------===//
//
// Names are checked where a runtime is declared, whether a job has it or not, as those of machines (CheckMachines.cpp).
//
//   runtime mine { tax.colective = 0.3; }      runtime has no entry 'tax.colective'; did you mean 'tax.collective'?
//
//===----------------------------------------------------------------------===//
#include "Extends.h"
#include "NameChecker.h"
#include "RuntimeWords.h"
#include "stage/Sema/Suggestions.h"

using namespace stage;
using namespace stage::sema;

namespace {
class RuntimeChecker : public NameChecker {
public:
  using NameChecker::NameChecker;

  void check(const ast::RuntimeDecl &runtime, ExtendsChecker &extends) {
    ScopeGuard scope(*this);
    isOfUser = !program.isOfLibrary(runtime);
    if (runtime.base && expectDecl<ast::RuntimeDecl>(runtime.base, "runtime"))
      extends.check(runtime);
    std::vector<Candidate> known;
    for (const RuntimeEntry &entry : runtimeEntries)
      known.push_back({entry.name, SMLoc()});
    for (const AllocatorEntry &entry : allocatorEntries)
      known.push_back({entry.name, SMLoc()});
    std::vector<ast::EntryStmt *> entries;
    for (ast::Stmt *stmt : runtime.body)
      if (auto *kernels = llvm::dyn_cast<ast::KernelStmt>(stmt))
        checkKernels(*kernels);
      else
        entries.push_back(llvm::cast<ast::EntryStmt>(stmt));
    checkEntryNames(entries, "runtime", known);
    for (const ast::EntryStmt *entry : entries)
      checkExpr(entry->value);
  }

private:
  static bool isOfOps(const ast::Pattern &pattern) {
    return !pattern.hasDims && pattern.text.endswith("()") && !pattern.text.contains(' ') &&
           pattern.text.count('[') == pattern.text.count("[*]");
  }

  void checkKernels(const ast::KernelStmt &kernels) {
    StringRef opClass = kernels.opClass.name;
    std::vector<Candidate> known;
    bool isResident = bool(kernels.resident);
    if (kernels.opClass && !llvm::is_contained(kernelClasses, opClass) && !(isResident && opClass == sendClass)) {
      for (StringRef each : kernelClasses)
        known.push_back({each, SMLoc()});
      DiagnosticBuilder error = diags.report(kernels.opClass.loc(), diag::NoKernelClass).range(kernels.opClass.range)
                                << opClass;
      suggestNearest(error, opClass, kernels.opClass.range, known);
      return;
    }
    if (StringRef text = kernels.pattern.text; !kernels.opClass && !isOfOps(kernels.pattern))
      diags.report(kernels.pattern.range.Start, diag::KernelPattern).range(kernels.pattern.range)
          << text << text.split('[').first.rtrim("().") + "()";
    else if (StringRef op = text; !kernels.opClass && !kernels.isFusion && op.consume_back(".grad()"))
      diags.report(kernels.pattern.range.Start, diag::KernelOfGradient).range(kernels.pattern.range) << text << op;
    else if (!kernels.opClass && isOfUser)
      warnUnknownOp(kernels.pattern);
    if (kernels.isFusion && kernels.opClass && opClass != elementwiseClass)
      diags.report(kernels.opClass.loc(), diag::FusedClass).range(kernels.opClass.range) << opClass;
    bool isElementwise = !kernels.opClass || opClass == elementwiseClass || opClass == optimizerClass;
    for (const KernelEntry &entry : kernelEntries)
      if (isResident ? entry.isOfResidents : entry.isOfOps && (entry.isOfProducts || isElementwise))
        known.push_back({entry.name, SMLoc()});
    checkEntryNames(kernels.entries, isResident ? "'resident'" : "'at'", known);
    if (!kernels.isFusion && kernels.entries.empty())
      diags.report(kernels.range.Start, diag::KernelsSayNothing).range(kernels.range);
  }

  /// `at **.rmsnorm()`: ops of the job alone are known later, but a name that is nearly that of an op is a slip.
  void warnUnknownOp(const ast::Pattern &pattern) {
    StringRef path = pattern.text.drop_back(2); // of `()`
    bool isOfGradients = path.consume_back(".grad");
    StringRef name = path.substr(path.rfind('.') + 1);
    if (name.contains('*') || program.isInLibrary(name))
      return;
    std::vector<Candidate> ops;
    for (const ast::File *each : program.getFiles())
      for (const ast::Decl *decl : each->decls)
        if (decl->name.name == name)
          return;
        else if (llvm::isa<ast::OpDecl>(decl))
          ops.push_back({decl->name.name, SMLoc()});
    const Candidate *nearest = name.size() > 3 ? findNearest(name, ops) : nullptr;
    if (nearest && name.edit_distance(nearest->name) <= 2)
      diags.report(pattern.range.Start, diag::RuntimeOpUnknown).range(pattern.range)
          << name << path.drop_back(name.size()) + nearest->name + (isOfGradients ? ".grad()" : "()");
  }

  bool mayMeanBuiltin() const override { return false; }

  bool isOfUser = false;
};
} // namespace

void stage::sema::checkRuntime(const Program &program, const ast::File &file, const ast::RuntimeDecl &runtime,
                               ExtendsChecker &extends) {
  RuntimeChecker(program, file).check(runtime, extends);
}
