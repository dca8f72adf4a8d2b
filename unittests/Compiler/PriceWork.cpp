//===- PriceWork.cpp - prices of shapes that are read from standard input -===//
//
//   price-work machines.stg:h100 --library=stdlib
//   contraction bf16 m n k batch isGrouped resultBytes bytes
//   attention bf16 rows columns heads keyHeads headSize valueSize pairs isBackward bytes isLatent
//   elementwise flops bytes
//   all_gather bytes first count stride        a group of so many ranks
//   message bytes from to
//
// Prints picoseconds, and 1 where the shape lies inside the tables, a line for each line. Another program that prices
// the same shapes is its check (test/Time/Inputs/prices.py).
//
//===----------------------------------------------------------------------===//
#include "stage/Compiler/MachineRates.h"
#include "stage/Compiler/Session.h"
#include "stage/Machine/Machine.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"
#include <iostream>
#include <sstream>

using namespace stage;
namespace cl = llvm::cl;

static cl::opt<std::string> machineName(cl::Positional, cl::desc("FILE:MACHINE"), cl::Required);
static cl::opt<std::string> library("library", cl::desc("Folder of the standard library"), cl::Required);

static std::vector<int64_t> readNumbers(std::istream &line) {
  std::vector<int64_t> numbers;
  for (int64_t number; line >> number;)
    numbers.push_back(number);
  return numbers;
}

static std::optional<Work> readWork(llvm::StringRef kind, std::istream &line) {
  Work work;
  if (kind == "contraction" || kind == "attention") {
    std::string name;
    line >> name;
    std::optional<DType> type = parseDType(name);
    if (!type)
      return std::nullopt;
    work.type = *type;
    work.kind = kind == "attention" ? WorkKind::Attention : WorkKind::Contraction;
  }
  std::vector<int64_t> n = readNumbers(line);
  if (kind == "elementwise" && n.size() == 2) {
    work.flops = n[0], work.bytes = n[1];
  } else if (kind == "contraction" && n.size() == 7) {
    work.m = n[0], work.n = n[1], work.k = n[2], work.batch = n[3];
    work.isGrouped = n[4] != 0;
    work.resultBytes = n[5], work.bytes = n[6];
  } else if (kind == "attention" && n.size() == 10) {
    work.rows = n[0], work.columns = n[1], work.heads = n[2], work.keyHeads = n[3];
    work.headSize = n[4], work.valueSize = n[5], work.pairs = n[6];
    work.isBackward = n[7] != 0;
    work.bytes = n[8];
    work.isLatent = n[9] != 0;
  } else {
    return std::nullopt;
  }
  return work;
}

static std::optional<CollectiveKind> readCollective(llvm::StringRef kind) {
  static constexpr std::pair<llvm::StringLiteral, CollectiveKind> kinds[] = {
      {"all_gather", CollectiveKind::AllGather},
      {"all_reduce", CollectiveKind::AllReduce},
      {"reduce_scatter", CollectiveKind::ReduceScatter},
      {"all_to_all", CollectiveKind::AllToAll}};
  for (const auto &[name, collective] : kinds)
    if (name == kind)
      return collective;
  return std::nullopt;
}

/// False where a line cannot be read, or has no price.
static bool price(const Machine &machine, const std::string &text) {
  std::istringstream line(text);
  std::string kind;
  line >> kind;
  llvm::StringRef missing;
  std::optional<Ticks> ticks;
  bool isInside = false;
  if (std::optional<CollectiveKind> collective = readCollective(kind)) {
    std::vector<int64_t> n = readNumbers(line), ranks;
    for (int64_t i = 0; n.size() == 4 && i < n[2]; ++i)
      ranks.push_back(n[1] + i * n[3]);
    if (ranks.empty())
      return false;
    GroupPlace place = machine.findPlace(ranks);
    ticks = machine.ofCollective(*collective, n[0], place, missing);
    isInside = machine.isInsideTables(*collective, n[0], place);
  } else if (kind == "message") {
    std::vector<int64_t> n = readNumbers(line);
    if (n.size() != 3)
      return false;
    ticks = machine.ofMessage(n[0], machine.findPlace({n[1], n[2]}), missing);
  } else if (std::optional<Work> work = readWork(kind, line)) {
    ticks = machine.ofWork(*work, missing);
    isInside = machine.isInsideTables(*work);
  }
  if (ticks)
    llvm::outs() << *ticks << ' ' << int(isInside) << '\n';
  return ticks.has_value();
}

int main(int argc, char **argv) {
  cl::ParseCommandLineOptions(argc, argv, "prices of shapes\n");
  auto [file, name] = llvm::StringRef(machineName).rsplit(':');
  DiagnosticPrinter printer(llvm::errs());
  Session session({.input = file.str(), .stdlibDir = library}, &printer);
  std::optional<MachineRates> rates = findRates(session, name, "bf16");
  if (!rates)
    return 1;
  Machine machine(*rates);
  for (std::string line; std::getline(std::cin, line);)
    if (!price(machine, line)) {
      llvm::errs() << "no price: " << line << '\n';
      return 1;
    }
  return 0;
}
