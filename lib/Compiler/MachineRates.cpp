//===- MachineRates.cpp - what a declared machine does in a second --------===//
#include "stage/Compiler/MachineRates.h"
#include "stage/Compiler/Diagnostics.h"
#include "stage/Sema/Diagnostics.h"
#include "stage/Sema/Evaluator.h"
#include "llvm/ADT/StringSwitch.h"

using namespace stage;
using llvm::StringRef;

/// 8-bit products whose operands have a scale for each block.
static constexpr llvm::StringLiteral blockType = "f8_block";

/// Where rates of a type are kept.
static size_t findTypeIndex(StringRef name) { return name == "tf32" ? tf32Index : size_t(*parseDType(name)); }

static std::optional<CollectiveKind> parseCollective(StringRef name) {
  return llvm::StringSwitch<std::optional<CollectiveKind>>(name)
      .Case("all_gather", CollectiveKind::AllGather)
      .Case("all_reduce", CollectiveKind::AllReduce)
      .Case("reduce_scatter", CollectiveKind::ReduceScatter)
      .Case("all_to_all", CollectiveKind::AllToAll)
      .Default(std::nullopt);
}

static MachineLevel makeLevel(const sema::BoundLevel &bound) {
  MachineLevel level{.name = bound.name, .ranks = bound.ranks, .rate = bound.rate, .efficiency = bound.efficiency};
  level.hop = bound.hop;
  level.base = bound.base;
  level.oversubscription = bound.oversubscription;
  level.isRing = bound.isRing;
  for (const auto &[name, table] : bound.collectives)
    level.collectives.push_back({*parseCollective(name), table});
  level.collectiveEfficiency = bound.collectiveEfficiency;
  for (const std::string &name : bound.inSwitch)
    level.inSwitch.push_back(*parseCollective(name));
  level.inSwitchGain = bound.inSwitchGain;
  level.used = bound.used;
  return level;
}

std::optional<MachineRates> stage::makeRates(const sema::BoundMachine &machine, StringRef type,
                                             DiagnosticEngine &diags) {
  MachineRates rates;
  std::string known;
  Rate half; // f16 and bf16 stand for each other
  for (const auto &[name, flops] : machine.flops) {
    known += (known.empty() ? "" : ", ") + name;
    rates.types[findTypeIndex(name)].flops = flops;
    if (name == type)
      rates.flops = flops;
    if (name == "f16" || name == "bf16")
      half = flops;
  }
  if (!rates.flops && (type == "f16" || type == "bf16"))
    rates.flops = half;
  if (!rates.flops) {
    diags.report(machine.range.Start, diag::MachineLacksType).range(machine.range) << machine.name << type << known;
    return std::nullopt;
  }
  TypeRates &eightBits = rates.types[size_t(DType::F8)];
  for (const auto &[name, ratio] : machine.contraction)
    (name == blockType ? eightBits.blockContraction : rates.types[findTypeIndex(name)].contraction) = {ratio.share,
                                                                                                       ratio.table};
  for (const auto &[name, ratio] : machine.attention)
    rates.types[findTypeIndex(name)].attention = {ratio.share, ratio.table};
  for (const auto &[name, part] : machine.sustained)
    (name == blockType ? eightBits.blockSustained : rates.types[findTypeIndex(name)].sustained) = part;
  for (const auto &[name, part] : machine.small)
    rates.types[findTypeIndex(name)].small = part;
  for (const auto &[name, floor] : machine.smallFloor)
    rates.types[findTypeIndex(name)].smallFloor = floor;
  for (const auto &[name, part] : machine.experts)
    rates.types[findTypeIndex(name)].experts = part;
  rates.expertWeights = machine.expertWeights;
  rates.expertFloor = machine.expertFloor;
  rates.smallWeights = machine.smallWeights;
  rates.cacheEfficiency = machine.cacheEfficiency;
  rates.cacheAttention = machine.cacheAttention;
  rates.latentAttention = machine.latentAttention;
  rates.cacheFloor = machine.cacheFloor;
  if (machine.latentFloor)
    rates.latentFloor = machine.latentFloor->num;
  if (machine.promptFloor)
    rates.promptFloor = machine.promptFloor->num;
  rates.attentionBackward = machine.attentionBackward;
  rates.kernelLeast = machine.kernelLeast;
  rates.memory = machine.memoryRate;
  rates.memoryEfficiency = machine.memoryEfficiency;
  rates.copy = machine.hostRate;
  rates.hostFlops = machine.hostFlops;
  rates.hostMemory = machine.hostMemory;
  rates.hostCapacity = machine.hostCapacity;
  rates.hostRanks = machine.hostRanks;
  rates.powerBusy = machine.powerBusy;
  rates.powerIdle = machine.powerIdle;
  rates.price = machine.price;
  rates.name = machine.name;
  rates.type = type.str();
  rates.changes = machine.changes;
  for (const sema::BoundLevel &level : machine.levels)
    rates.levels.push_back(makeLevel(level));
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

static KernelRule::OpClass findOpClass(StringRef name) {
  using OpClass = KernelRule::OpClass;
  return llvm::StringSwitch<OpClass>(name)
      .Case("elementwise", OpClass::Elementwise)
      .Case("contraction", OpClass::Contraction)
      .Case("attention", OpClass::Attention)
      .Case("optimizer", OpClass::Optimizer)
      .Case("send", OpClass::Send)
      .Default(OpClass::Named);
}

static std::vector<KernelRule> makeKernels(const sema::BoundRuntime &runtime) {
  std::vector<KernelRule> rules;
  for (const sema::BoundKernels &kernels : runtime.kernels)
    rules.push_back({.kind = kernels.isFusion           ? KernelRule::Kind::Fusion
                             : kernels.resident.empty() ? KernelRule::Kind::Kernel
                                                        : KernelRule::Kind::Resident,
                     .opClass = findOpClass(kernels.opClass),
                     .pattern = PathPattern::parse(kernels.pattern),
                     .range = kernels.range,
                     .bytes = kernels.bytes,
                     .backwardBytes = kernels.backwardBytes,
                     .besideBytes = kernels.besideBytes,
                     .backwardBesideBytes = kernels.backwardBesideBytes,
                     .ringBytes = kernels.ringBytes,
                     .backwardRingBytes = kernels.backwardRingBytes,
                     .floor = kernels.floor,
                     .backwardFloor = kernels.backwardFloor,
                     .host = kernels.host,
                     .backwardHost = kernels.backwardHost,
                     .speed = kernels.speed,
                     .type = kernels.type.empty()     ? std::nullopt
                             : kernels.type == "tf32" ? std::optional(DType::F32)
                                                      : parseDType(kernels.type),
                     .allowsTF32 = kernels.type == "tf32",
                     .resident = kernels.resident.str(),
                     .isPerShape = kernels.isPerShape,
                     .keepBytes = kernels.keepBytes,
                     .overwritten = kernels.overwritten.str(),
                     .backwardOverwritten = kernels.backwardOverwritten.str(),
                     .dropped = kernels.dropped.str(),
                     .heldUntil = kernels.heldUntil.str(),
                     .holdBytes = kernels.holdBytes,
                     .placed = kernels.placed.str()});
  return rules;
}

static std::optional<AllocatorRules> makeAllocator(const sema::BoundAllocator &allocator) {
  if (!allocator.round)
    return std::nullopt;
  return AllocatorRules{.round = allocator.round,
                        .small = allocator.small,
                        .smallSegment = allocator.smallSegment,
                        .large = allocator.large,
                        .largeSegment = allocator.largeSegment,
                        .segmentRound = allocator.segmentRound,
                        .unsplit = allocator.unsplit};
}

Runtime stage::makeRuntime(const std::optional<sema::BoundRuntime> &runtime) {
  if (!runtime)
    return Runtime();
  return {.name = runtime->name,
          .changes = runtime->changes,
          .launch = runtime->launch,
          .stepHost = runtime->stepHost,
          .taxOfCollectives = runtime->taxOfCollectives,
          .taxOfSends = runtime->taxOfSends,
          .taxOfCopies = runtime->taxOfCopies,
          .taxOfCommunication = runtime->taxOfCommunication,
          .attentionKernel = runtime->attentionKernel,
          .kernelSpeed = runtime->kernelSpeed,
          .exchangeEfficiency = runtime->exchangeEfficiency,
          .attentionTile = runtime->attentionTile,
          .kernels = makeKernels(*runtime),
          .reserve = runtime->reserve,
          .allocator = makeAllocator(runtime->allocator)};
}
