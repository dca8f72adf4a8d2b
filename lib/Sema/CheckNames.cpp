//===- CheckNames.cpp - all declarations of all files ---------------------===//
#include "Extends.h"
#include "NameChecker.h"

using namespace stage;
using namespace stage::sema;
using llvm::dyn_cast;

bool stage::sema::checkNames(const Program &program) {
  DiagnosticEngine &diags = program.getDiags();
  unsigned before = diags.getNumErrors();
  DeclUses uses;
  ExtendsChecker extends(program);
  ConfigNames configs;
  for (const ast::File *file : program.getFiles())
    for (const ast::Decl *decl : file->decls) {
      if (auto *module = dyn_cast<ast::ModuleDecl>(decl))
        checkModule(program, *file, *module, uses);
      else if (auto *op = dyn_cast<ast::OpDecl>(decl))
        checkOp(program, *file, *op);
      else if (auto *strategy = dyn_cast<ast::StrategyDecl>(decl))
        checkStrategy(program, *file, *strategy, uses);
      else if (auto *schedule = dyn_cast<ast::ScheduleDecl>(decl))
        checkSchedule(program, *file, *schedule);
      else if (auto *config = dyn_cast<ast::ConfigDecl>(decl))
        checkConfig(program, *file, *config, extends, configs);
      else if (auto *job = dyn_cast<ast::JobDecl>(decl))
        checkJob(program, *file, *job, extends);
      else if (auto *precision = dyn_cast<ast::PrecisionDecl>(decl))
        checkPrecision(program, *file, *precision);
      else if (auto *optimizer = dyn_cast<ast::OptimizerDecl>(decl))
        checkOptimizer(program, *file, *optimizer);
      else if (auto *machine = dyn_cast<ast::MachineDecl>(decl))
        checkMachine(program, *file, *machine, extends);
      else if (auto *runtime = dyn_cast<ast::RuntimeDecl>(decl))
        checkRuntime(program, *file, *runtime, extends);
      else if (auto *fn = dyn_cast<ast::FnDecl>(decl))
        checkFunction(program, *file, *fn);
      else if (auto *launcher = dyn_cast<ast::LauncherDecl>(decl))
        checkLauncher(program, *launcher);
    }
  checkRecursion(uses, diags);
  return diags.getNumErrors() == before;
}
