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

using namespace stage;
using namespace stage::sema;

namespace {
class RuntimeChecker : public NameChecker {
public:
  using NameChecker::NameChecker;

  void check(const ast::RuntimeDecl &runtime, ExtendsChecker &extends) {
    ScopeGuard scope(*this);
    if (runtime.base && expectDecl<ast::RuntimeDecl>(runtime.base, "runtime"))
      extends.check(runtime);
    std::vector<Candidate> known;
    for (const RuntimeEntry &entry : runtimeEntries)
      known.push_back({entry.name, SMLoc()});
    std::vector<ast::EntryStmt *> entries;
    for (ast::Stmt *stmt : runtime.body)
      entries.push_back(llvm::cast<ast::EntryStmt>(stmt));
    checkEntryNames(entries, "runtime", known);
    for (const ast::EntryStmt *entry : entries)
      checkExpr(entry->value);
  }

private:
  bool mayMeanBuiltin() const override { return false; }
};
} // namespace

void stage::sema::checkRuntime(const Program &program, const ast::File &file, const ast::RuntimeDecl &runtime,
                               ExtendsChecker &extends) {
  RuntimeChecker(program, file).check(runtime, extends);
}
