//===- BindMachine.cpp - a declared machine, evaluated --------------------===//
//
// Problem: entries of a machine are spread over what it extends, itself and the command line.
//
//   machine h100 { memory.rate = 3.35TB/s; level node { ranks = 8; rate = 450GB/s; } }
//   machine mine extends h100 { level node { rate = 400GB/s; } level rail { ranks = 256; rate = 50GB/s; } }
//   -D machine.rail.rate=25GB/s
//
//   memory.rate = 3.35TB/s, node.ranks = 8, node.rate = 400GB/s, rail.ranks = 256, rail.rate = 25GB/s
//
// Algorithm: entries are collected by their whole names, the last base first, so that later ones replace earlier ones;
// a level that is new lies outside of those before it. Then each is evaluated in the file that says it, its dimension
// and its range are checked, and levels are compared with those inside of them.
//
// Limits: a machine cannot drop a level of its base. Rates are rounded down to whole bytes or FLOPs per second.
//
//===----------------------------------------------------------------------===//
#include "Extends.h"
#include "MachineWords.h"
#include "NamedEntries.h"
#include "stage/Sema/BoundMachine.h"
#include "stage/Sema/Builtins.h"
#include "stage/Sema/Evaluator.h"
#include "llvm/ADT/MapVector.h"

using namespace stage;
using namespace stage::sema;

namespace {
class MachineBinder {
public:
  MachineBinder(Evaluator &evaluator, const Program &program, const ast::MachineDecl &decl, SMRange range,
                EntryOverride override, const Environment &env)
      : evaluator(evaluator), program(program), decl(decl), override(override), env(env), diags(program.getDiags()) {
    machine.name = decl.name.name.str();
    machine.range = range;
  }

  bool bind() {
    collect();
    bool ok = bindEntries();
    ok &= bindLevels();
    return ok && checkLevels();
  }

  BoundMachine machine;

private:
  void collect() {
    for (const ast::MachineDecl *link : getChain(program, decl))
      for (const ast::Stmt *stmt : link->body) {
        const ast::File *file = &program.getFile(*link);
        if (auto *entry = llvm::dyn_cast<ast::EntryStmt>(stmt)) {
          entries[entry->name.name.str()] = {entry->value, file};
          continue;
        }
        auto *level = llvm::cast<ast::LevelStmt>(stmt);
        levels.insert({level->name.name, level->name});
        for (const ast::EntryStmt *entry : level->entries)
          entries[(level->name.name + "." + entry->name.name).str()] = {entry->value, file};
      }
    machine.changes = replaceEntries(entries, listMachineEntries(program, decl), override);
  }

  /// The number of base units of an entry. Nothing after a report.
  std::optional<Rational> evaluate(const std::string &name, const NamedEntry &entry, MachineValue kind) {
    bool isNumber = kind == MachineValue::Share || kind == MachineValue::Count;
    std::optional<Dimension> dimension = isNumber ? std::nullopt : std::optional(getDimension(kind));
    std::optional<EntryValue> value = evaluateEntry(evaluator, name, entry, dimension, env);
    if (!value)
      return std::nullopt;
    std::optional<Rational> exact = value->exact;
    bool isGood = exact && exact->num >= (kind != MachineValue::Time);
    StringRef wanted;
    switch (kind) {
    case MachineValue::Share:
      wanted = "a number above 0 and at most 1, such as 0.8";
      isGood = isGood && exact->compare(Rational::integer(1)) <= 0 && exact->den < INT32_MAX;
      break;
    case MachineValue::Count:
      wanted = "a whole number of ranks, at least 1";
      isGood = isGood && exact->isInteger() && exact->num <= INT32_MAX;
      break;
    case MachineValue::Time:
      wanted = "a time of at most a day, such as 2us";
      isGood = isGood && exact->compare(Rational::integer(86'400)) <= 0;
      if (isGood)
        exact = exact->mul(Rational::integer(1'000'000'000'000))->floor();
      break;
    default:
      wanted = "above 0 and below 2^63, such as ";
      isGood = isGood && !isTooLarge(*exact) && exact->floor().num > 0;
      if (isGood)
        exact = exact->floor();
    }
    if (isGood)
      return exact;
    diags.report(entry.value->loc(), diag::MachineValueRange).range(entry.value->range)
        << "'" + name + "'"
        << wanted.str() + (isNumber || kind == MachineValue::Time ? "" : getDimension(kind).getExample())
        << evaluator.format(value->value);
    return std::nullopt;
  }

  static Dimension getDimension(MachineValue kind) {
    switch (kind) {
    case MachineValue::Flops:
      return Dimension::ofFlopsPerSecond();
    case MachineValue::Rate:
      return Dimension::ofBytesPerSecond();
    case MachineValue::Time:
      return Dimension::ofTime();
    default:
      return Dimension::ofBytes();
    }
  }

  bool reportMissing(StringRef name) {
    SMRange range = decl.name.range;
    diags.report(range.Start, diag::EntryMissing).range(range) << decl.name.name << name;
    return false;
  }

  bool bindEntries() {
    bool ok = true;
    for (const auto &[name, entry] : entries) {
      StringRef type = name;
      if (!type.consume_front(flopsPrefix) || !isFloatName(type))
        continue;
      std::optional<Rational> value = evaluate(name, entry, MachineValue::Flops);
      ok &= value.has_value();
      if (value)
        machine.flops.emplace_back(type.str(), uint64_t(value->num));
    }
    if (ok && machine.flops.empty())
      ok = reportMissing("flops.bf16");
    for (const MachineEntry &each : machineEntries) {
      auto entry = entries.find(each.name.str());
      if (entry == entries.end()) {
        ok &= !each.isNeeded || reportMissing(each.name);
        continue;
      }
      std::optional<Rational> value = evaluate(entry->first, entry->second, each.value);
      ok &= value.has_value();
      if (value && each.value == MachineValue::Share)
        machine.memoryEfficiency = *value;
      else if (value)
        getField(each.name) = uint64_t(value->num);
    }
    return ok;
  }

  uint64_t &getField(StringRef name) {
    return name == "memory.rate"       ? machine.memoryRate
           : name == "memory.capacity" ? machine.memoryCapacity
           : name == "host.rate"       ? machine.hostRate
           : name == "host.flops"      ? machine.hostFlops
                                       : machine.hostMemory;
  }

  bool bindLevels() {
    bool ok = true;
    for (const auto &[name, ident] : levels) {
      BoundLevel &level = machine.levels.emplace_back();
      level.name = name.str();
      for (const MachineEntry &each : levelEntries) {
        auto entry = entries.find(level.name + "." + each.name.str());
        if (entry == entries.end()) {
          ok &= !each.isNeeded || reportMissing(level.name + "." + each.name.str());
          continue;
        }
        std::optional<Rational> value = evaluate(entry->first, entry->second, each.value);
        ok &= value.has_value();
        if (!value)
          continue;
        if (each.value == MachineValue::Share)
          level.efficiency = *value;
        else if (each.value == MachineValue::Count)
          level.ranks = int64_t(value->num);
        else if (each.value == MachineValue::Rate)
          level.rate = uint64_t(value->num);
        else
          level.latency = int64_t(value->num);
      }
    }
    return ok;
  }

  bool checkLevels() {
    for (size_t i = 1; i < machine.levels.size(); ++i) {
      const BoundLevel &inner = machine.levels[i - 1], &outer = machine.levels[i];
      if (outer.ranks > inner.ranks && outer.ranks % inner.ranks == 0)
        continue;
      const ast::Ident &name = levels.find(outer.name)->second, &before = levels.find(inner.name)->second;
      diags.report(name.loc(), diag::LevelsDoNotNest)
          .range(name.range)
          .with(outer.name, outer.ranks, inner.ranks, inner.name)
          .note(before.loc(), diag::PreviousHere)
          .with(inner.name);
      return false;
    }
    return true;
  }

  Evaluator &evaluator;
  const Program &program;
  const ast::MachineDecl &decl;
  EntryOverride override;
  const Environment &env;
  DiagnosticEngine &diags;
  NamedEntries entries;
  llvm::MapVector<StringRef, ast::Ident> levels;
};
} // namespace

std::string BoundMachine::describe() const { return describeChanges(name, changes); }

std::optional<BoundMachine> stage::sema::bindMachine(Evaluator &evaluator, const Program &program,
                                                     const ast::MachineDecl &decl, SMRange range,
                                                     EntryOverride override, const Environment &env) {
  MachineBinder binder(evaluator, program, decl, range, override, env);
  if (!binder.bind())
    return std::nullopt;
  return std::move(binder.machine);
}

std::vector<std::string> stage::sema::listMachineEntries(const Program &program, const ast::MachineDecl &decl) {
  std::vector<std::string> names;
  for (StringRef type : {"f32", "f16", "bf16", "f8", "f4"})
    names.push_back((flopsPrefix + type).str());
  for (const MachineEntry &entry : machineEntries)
    names.push_back(entry.name.str());
  llvm::MapVector<StringRef, bool> levels;
  for (const ast::MachineDecl *link : getChain(program, decl))
    for (const ast::Stmt *stmt : link->body)
      if (auto *level = llvm::dyn_cast<ast::LevelStmt>(stmt))
        levels.insert({level->name.name, true});
  for (const auto &[level, _] : levels)
    for (const MachineEntry &entry : levelEntries)
      names.push_back((level + "." + entry.name).str());
  return names;
}
