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
// a level that is new lies outside of those before it, and has the entries of the level that it extends, as these are
// in the end. Then each is evaluated in the file that says it, its dimension and its range are checked, and levels are
// compared with those inside of them.
//
// Limits: a machine cannot drop a level of its base. Rates are rounded down to whole bytes or FLOPs per second.
//
//===----------------------------------------------------------------------===//
#include "Extends.h"
#include "MachineWords.h"
#include "NamedEntries.h"
#include "stage/Sema/BoundMachine.h"
#include "stage/Sema/Evaluator.h"
#include "stage/Sema/Suggestions.h"
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
    machine.libraryNames = listLibraryNames(program, decl);
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
    llvm::MapVector<StringRef, StringRef> bases;
    for (const ast::MachineDecl *link : getChain(program, decl))
      for (const ast::Stmt *stmt : link->body) {
        const ast::File *file = &program.getFile(*link);
        if (auto *entry = llvm::dyn_cast<ast::EntryStmt>(stmt)) {
          entries[entry->name.name.str()] = {entry->value, file};
          continue;
        }
        auto *level = llvm::cast<ast::LevelStmt>(stmt);
        levels.insert({level->name.name, level->name});
        if (level->base)
          bases[level->name.name] = level->base.name;
        for (const ast::EntryStmt *entry : level->entries)
          entries[(level->name.name + "." + entry->name.name).str()] = {entry->value, file};
      }
    machine.changes = replaceEntries(entries, listMachineEntries(program, decl), override);
    // From the inside out, so that a base has the entries of its own base.
    for (const auto &[level, _] : levels)
      if (auto base = bases.find(level); base != bases.end())
        for (const std::string &name : listLevelEntryNames())
          if (auto entry = entries.find((base->second + "." + name).str()); name != usedEntry && entry != entries.end())
            entries.insert({(level + "." + name).str(), entry->second});
  }

  const NamedEntry *find(const std::string &name) const {
    auto entry = entries.find(name);
    return entry == entries.end() ? nullptr : &entry->second;
  }

  static std::optional<Dimension> getDimension(MachineValue kind) {
    switch (kind) {
    case MachineValue::Flops:
      return Dimension::ofFlopsPerSecond();
    case MachineValue::Rate:
      return Dimension::ofBytesPerSecond();
    case MachineValue::Time:
    case MachineValue::Floor:
      return Dimension::ofTime();
    case MachineValue::Bytes:
      return Dimension::ofBytes();
    case MachineValue::Power:
      return Dimension{.watts = 1};
    case MachineValue::Price:
      return Dimension{.seconds = -1, .dollars = 1};
    case MachineValue::Share:
    case MachineValue::Factor:
    case MachineValue::Multiple:
    case MachineValue::Count:
      return std::nullopt;
    }
    llvm_unreachable("no other kinds");
  }

  /// The number of base units of an entry. Nothing after a report.
  std::optional<Rational> evaluate(const std::string &name, const NamedEntry &entry, MachineValue kind,
                                   StringRef orElse = "") {
    std::optional<EntryValue> value = evaluateEntry(evaluator, name, entry, getDimension(kind), env);
    if (!value)
      return std::nullopt;
    if (value->exact)
      if (std::optional<Rational> checked = checkRange(*value->exact, kind))
        return checked;
    diags.report(entry.value->loc(), diag::MachineValueRange).range(entry.value->range)
        << "'" + name + "'" << describeRange(kind) + orElse.str() << evaluator.format(value->value);
    return std::nullopt;
  }

  /// In whole units, where a field holds these. Nothing where the value is out of range.
  static std::optional<Rational> checkRange(Rational value, MachineValue kind) {
    auto isWithin = [&](int64_t least, int64_t most) {
      return value.compare(Rational::integer(least)) >= 0 && value.compare(Rational::integer(most)) <= 0;
    };
    bool isFraction = value.num > 0 && value.den < INT32_MAX; // products of a few of them stay exact
    switch (kind) {
    case MachineValue::Share:
      return isFraction && isWithin(0, 1) ? std::optional(value) : std::nullopt;
    case MachineValue::Factor:
      return isFraction && isWithin(0, 2) ? std::optional(value) : std::nullopt;
    case MachineValue::Multiple:
      return isFraction && isWithin(1, 1000) ? std::optional(value) : std::nullopt;
    case MachineValue::Count:
      return value.isInteger() && isWithin(1, INT32_MAX) ? std::optional(value) : std::nullopt;
    case MachineValue::Power:
    case MachineValue::Price:
      return value.num > 0 && !isTooLarge(value) ? std::optional(value) : std::nullopt;
    case MachineValue::Time:
    case MachineValue::Floor:
      return isWithin(0, kind == MachineValue::Time ? 86'400 : 1)
                 ? std::optional(value.mul(Rational::integer(1'000'000'000'000))->floor())
                 : std::nullopt;
    case MachineValue::Flops:
    case MachineValue::Rate:
    case MachineValue::Bytes:
      return !isTooLarge(value) && value.floor().num > 0 ? std::optional(value.floor()) : std::nullopt;
    }
    llvm_unreachable("no other kinds");
  }

  static std::string describeRange(MachineValue kind) {
    switch (kind) {
    case MachineValue::Share:
      return "a number above 0 and at most 1, such as 0.8";
    case MachineValue::Factor:
      return "a number above 0 and at most 2, such as 0.9";
    case MachineValue::Multiple:
      return "a number from 1 to 1000, such as 2";
    case MachineValue::Count:
      return "a whole number of ranks, at least 1";
    case MachineValue::Time:
      return "a time of at most a day, such as 2us";
    case MachineValue::Floor:
      return "a time of at most a second, such as 3us";
    default:
      return "above 0 and below 2^63, such as " + getDimension(kind)->getExample();
    }
  }

  bool reportMissing(StringRef name) {
    SMRange range = decl.name.range;
    auto [owner, entry] = name.split('.');
    auto isOwner = [&, of = owner](const BoundLevel &level) { return level.name == of; };
    bool isOfLevel = llvm::any_of(machine.levels, isOwner);
    StringRef last = isOfLevel ? entry : name;
    std::string example = last.contains("flops")  ? "989TFLOP/s"
                          : last.contains("rate") ? (isOfLevel ? "450GB/s" : "3.35TB/s")
                          : last == "ranks"       ? "8"
                                                  : "...";
    DiagnosticBuilder error = diags.report(range.Start, diag::EntryMissing).range(range)
                              << decl.name.name << name << example;
    if (isOfLevel)
      error.note(SMLoc(), diag::FormInstead) << ("level " + owner + " { " + entry + " = " + example + "; ... }").str();
    return false;
  }

  /// Entries of a list in MachineWords.h, those of a level behind `prefix`.
  template <typename Owner>
  bool bindListed(ArrayRef<MachineEntry<Owner>> list, const std::string &prefix, Owner &owner) {
    bool ok = true;
    for (const MachineEntry<Owner> &each : list) {
      std::string name = prefix + each.name.str();
      const NamedEntry *entry = find(name);
      if (!entry) {
        ok &= !each.isNeeded || reportMissing(name);
        continue;
      }
      std::optional<Rational> value = evaluate(name, *entry, each.value);
      ok &= value.has_value();
      if (value)
        std::visit([&](auto field) { store(owner.*field, *value); }, each.field);
    }
    return ok;
  }
  static void store(Rate &field, const Rational &value) { field = Rate(uint64_t(value.num)); }
  static void store(uint64_t &field, const Rational &value) { field = uint64_t(value.num); }
  static void store(int64_t &field, const Rational &value) { field = int64_t(value.num); }
  static void store(Rational &field, const Rational &value) { field = value; }
  static void store(std::optional<Rational> &field, const Rational &value) { field = value; }

  bool bindEntries() {
    bool ok = true;
    for (StringRef type : machineTypes) {
      ok &= bindOfType(flopsPrefix, type, MachineValue::Flops, machine.flops);
      ok &= bindOfType(sustainedPrefix, type, MachineValue::Factor, machine.sustained);
      ok &= bindOfType(smallPrefix, type, MachineValue::Share, machine.small);
      ok &= bindOfType(smallFloorPrefix, type, MachineValue::Floor, machine.smallFloor);
      ok &= bindOfType(expertsPrefix, type, MachineValue::Share, machine.experts);
      for (StringRef prefix : {smallPrefix, smallFloorPrefix})
        ok &= checkTogether((prefix + type).str(), {smallWeightsEntry.str()});
      ok &= checkTogether((expertsPrefix + type).str(), {expertWeightsEntry.str()});
      ok &= bindRatio(contractionPrefix, type, machine.contraction);
      ok &= bindRatio(attentionPrefix, type, machine.attention);
    }
    ok &= bindRatio(contractionPrefix, blockType, machine.contraction);
    ok &= bindOfType(sustainedPrefix, blockType, MachineValue::Factor, machine.sustained);
    for (StringRef prefix : {contractionPrefix, sustainedPrefix})
      ok &= checkTogether((prefix + blockType).str(), {(flopsPrefix + blockTypeOf).str()});
    ok &= checkTogether((sustainedPrefix + blockType).str(), {(contractionPrefix + blockType).str()});
    if (ok && machine.flops.empty())
      ok = reportMissing("flops.bf16");
    for (StringRef entry : {"cache.attention", "cache.floor", "latent.attention", "latent.floor", "prompt.floor"})
      ok &= checkTogether(entry.str(), {cacheEfficiencyEntry.str()});
    ok &= checkTogether("experts.floor", {expertWeightsEntry.str()});
    return ok & bindListed<BoundMachine>(machineEntries, "", machine);
  }

  template <typename Value>
  bool bindOfType(StringRef prefix, StringRef type, MachineValue kind, ByName<Value> &values) {
    std::string name = (prefix + type).str();
    const NamedEntry *entry = find(name);
    std::optional<Rational> value = entry ? evaluate(name, *entry, kind) : std::nullopt;
    if (value)
      store(values.emplace_back(type.str(), Value()).second, *value);
    return !entry || value;
  }

  bool bindRatio(StringRef prefix, StringRef type, ByName<BoundRatio> &ratios) {
    std::string name = (prefix + type).str();
    const NamedEntry *entry = find(name);
    if (!entry)
      return true;
    BoundRatio ratio;
    if (const ast::StringExpr *file = findTableName(entry->value))
      ratio.table = readTableOf(*entry, *file, prefix, name);
    else if (checkTableCall(entry->value, name, diags))
      ratio.share = evaluate(name, *entry, MachineValue::Share, ", or table(\"file.csv\")");
    if (!ratio.table && !ratio.share)
      return false;
    ratios.emplace_back(type.str(), std::move(ratio));
    return true;
  }

  std::shared_ptr<const Grid> readTableOf(const NamedEntry &entry, const ast::StringExpr &file, StringRef prefix,
                                          StringRef name) {
    const ast::File &by = entry.file ? *entry.file : env.getFile();
    return readTable(program, file, by.path, getTableForm(prefix), name, diags);
  }

  bool bindLevels() {
    bool ok = true;
    for (const auto &[name, ident] : levels) {
      BoundLevel &level = machine.levels.emplace_back();
      level.name = name.str();
      // What is reached of links inside a node, and of network ports, where nothing better is known.
      level.efficiency = machine.levels.size() == 1 ? Rational{7, 10} : Rational{17, 20};
      std::string prefix = level.name + ".";
      ok &= bindListed<BoundLevel>(levelEntries, prefix, level);
      ok &= bindWords(prefix, level);
      for (StringRef collective : collectiveNames) {
        std::string name = (prefix + collectivePrefix + collective).str();
        const NamedEntry *entry = find(name);
        if (!entry)
          continue;
        const ast::StringExpr *file = findTableName(entry->value);
        auto table = file ? readTableOf(*entry, *file, collectivePrefix, name) : nullptr;
        if (!file)
          diags.report(entry->value->loc(), diag::MachineValueRange).range(entry->value->range)
              << "'" + name + "'"
              << "table(\"file.csv\")" << ast::textOf(entry->value);
        ok &= table != nullptr;
        if (table)
          level.collectives.emplace_back(collective.str(), std::move(table));
      }
      ok &= checkTogether(prefix + inSwitchEntry.str(), {prefix + inSwitchGainEntry.str()});
      ok &= checkTogether(prefix + inSwitchGainEntry.str(), {prefix + inSwitchEntry.str()});
      std::vector<std::string> tables;
      for (StringRef collective : collectiveNames)
        tables.push_back((prefix + collectivePrefix + collective).str());
      ok &= checkTogether(prefix + collectiveEfficiencyEntry.str(), tables);
    }
    return ok;
  }

  bool bindWords(const std::string &prefix, BoundLevel &level) {
    for (StringRef word : {kindEntry, inSwitchEntry}) {
      std::string name = prefix + word.str();
      const NamedEntry *entry = find(name);
      if (!entry)
        continue;
      std::optional<std::vector<std::string>> words = readWords(entry->value, word, name, diags);
      if (!words)
        return false;
      if (word == kindEntry)
        level.isRing = words->front() == "ring";
      else
        level.inSwitch = std::move(*words);
    }
    return true;
  }

  /// An entry would have no effect without one of others.
  bool checkTogether(const std::string &name, ArrayRef<std::string> others) {
    const NamedEntry *entry = find(name);
    if (!entry || llvm::any_of(others, [&](const std::string &other) { return find(other); }))
      return true;
    diags.report(entry->value->loc(), diag::EntryMissing).range(entry->value->range) << name << others.front() << "...";
    return false;
  }

  bool checkLevels() {
    for (size_t i = 1; i < machine.levels.size(); ++i) {
      const BoundLevel &inner = machine.levels[i - 1], &outer = machine.levels[i];
      bool isOutermost = i + 1 == machine.levels.size(); // one group, whose last part may be cut
      if (outer.ranks > inner.ranks && (isOutermost || outer.ranks % inner.ranks == 0))
        continue;
      const ast::Ident &name = levels.find(outer.name)->second, &before = levels.find(inner.name)->second;
      diags.report(name.loc(), diag::LevelsDoNotNest)
          .range(name.range)
          .with(outer.name, outer.ranks, inner.ranks, inner.name)
          .note(before.loc(), diag::NameInstead)
          .with("write, for example, 'level " + outer.name + " { ranks = " + std::to_string(inner.ranks * 2) +
                "; ... }', two groups of '" + inner.name + "', which is declared here");
      return false;
    }
    return checkUsed();
  }

  /// Parts of levels that jobs fill nest, too.
  bool checkUsed() {
    int64_t inside = 1; // ranks of the level inside that jobs fill, if there are as many
    for (const BoundLevel &level : machine.levels) {
      std::string name = level.name + "." + usedEntry.str();
      const NamedEntry *entry = level.used ? find(name) : nullptr;
      if (entry && &level == &machine.levels.back()) {
        diags.report(entry->value->loc(), diag::UsedOutermost).range(entry->value->range) << level.name << name;
        return false;
      }
      int64_t most = level.ranks / inside * inside;
      if (entry && (level.used > most || level.used % inside)) {
        int64_t nearest = std::clamp(level.used / inside * inside, inside, most);
        std::string multiple = inside > 1 ? "a multiple of " + std::to_string(inside) : "a number";
        diags.report(entry->value->loc(), diag::MachineValueRange).range(entry->value->range)
            << "'" + name + "'"
            << multiple + " that is at most " + std::to_string(most) + ", such as " + std::to_string(nearest)
            << std::to_string(level.used);
        return false;
      }
      inside = entry ? level.used : most;
    }
    return true;
  }

  Evaluator &evaluator;
  const Program &program;
  const ast::MachineDecl &decl;
  EntryOverride override;
  const Environment &env;
  DiagnosticEngine &diags;
  NamedEntries entries; ///< By whole names, `rail.rate`.
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
  std::vector<std::string> names = listMachineEntryNames();
  llvm::MapVector<StringRef, bool> levels;
  for (const ast::MachineDecl *link : getChain(program, decl))
    for (const ast::Stmt *stmt : link->body)
      if (auto *level = llvm::dyn_cast<ast::LevelStmt>(stmt))
        levels.insert({level->name.name, true});
  for (const auto &[level, _] : levels)
    for (const std::string &entry : listLevelEntryNames())
      names.push_back((level + "." + entry).str());
  return names;
}
