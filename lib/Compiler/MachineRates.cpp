//===- MachineRates.cpp - what a declared machine does in a second --------===//
#include "stage/Compiler/MachineRates.h"
#include "stage/Compiler/Diagnostics.h"
#include "stage/Sema/Diagnostics.h"
#include "stage/Sema/Evaluator.h"

using namespace stage;
using llvm::StringRef;

std::optional<MachineRates> stage::makeRates(const sema::BoundMachine &machine, StringRef type,
                                             DiagnosticEngine &diags) {
  MachineRates rates;
  std::string known;
  for (const auto &[name, flops] : machine.flops) {
    known += (known.empty() ? "" : ", ") + name;
    if (name == type)
      rates.flops = flops;
  }
  if (!rates.flops) {
    diags.report(machine.range.Start, diag::MachineLacksType).range(machine.range) << machine.name << type << known;
    return std::nullopt;
  }
  rates.memory = machine.memoryRate;
  rates.memoryEfficiency = machine.memoryEfficiency;
  rates.copy = machine.hostRate;
  rates.hostFlops = machine.hostFlops;
  rates.hostMemory = machine.hostMemory;
  rates.name = machine.name;
  rates.type = type.str();
  rates.changes = machine.changes;
  for (const sema::BoundLevel &level : machine.levels)
    rates.levels.push_back({level.name, level.ranks, level.rate, level.efficiency, level.latency});
  return rates;
}

std::optional<MachineRates> stage::findRates(Session &session, StringRef name, StringRef type) {
  if (!session.load())
    return std::nullopt;
  sema::Program &program = session.getFiles();
  const ast::File &file = *program.getMain();
  auto *decl = llvm::dyn_cast_or_null<ast::MachineDecl>(program.lookup(file, name));
  if (!decl) {
    std::vector<sema::Candidate> machines;
    for (const ast::Decl *each : file.decls)
      if (llvm::isa<ast::MachineDecl>(each))
        machines.push_back({each->name.name, each->name.loc()});
    DiagnosticBuilder error = session.getDiags().report(SMLoc(), diag::NoSuchMachine) << file.path << name;
    if (const sema::Candidate *nearest = sema::findNearest(name, machines))
      error.note(nearest->loc, diag::DidYouMean) << nearest->name;
    return std::nullopt;
  }
  SizeBinding binding;
  Obligations obligations;
  sema::Evaluator evaluator(program, session.getSizes(), binding, obligations, session.getDiags());
  auto keep = [](StringRef) -> const ast::Expr * { return nullptr; };
  std::optional<sema::BoundMachine> machine =
      sema::bindMachine(evaluator, program, *decl, decl->name.range, keep, sema::Environment(file));
  return machine ? makeRates(*machine, type, session.getDiags()) : std::nullopt;
}

Runtime stage::makeRuntime(const std::optional<sema::BoundRuntime> &runtime) {
  if (!runtime)
    return Runtime();
  return {.name = runtime->name,
          .changes = runtime->changes,
          .launch = runtime->launch,
          .taxOfCollectives = runtime->taxOfCollectives,
          .taxOfSends = runtime->taxOfSends,
          .taxOfCopies = runtime->taxOfCopies,
          .taxOfCommunication = runtime->taxOfCommunication,
          .attentionKernel = runtime->attentionKernel};
}
