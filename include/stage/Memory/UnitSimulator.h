//===- UnitSimulator.h - the tensors of one unit, node by node -*- C++ -*-===//
//
// Problem: how much does a virtual stage hold at each moment of the units that run for
// one microbatch, and how much does it keep in between? And which tensors does
// each node of a trace read and write, so that a simulator that tracks memory comes to
// the same numbers?
//
//   forward   %h = linear(%x, %w)      writes h              saved: x
//             %y = gelu(%h)            reads h, writes y     saved: h
//   backward  %dh = gelu.grad(%h, %dy) reads h and dy, which nothing reads after it
//
// Algorithm: walks all templates in order (UnitWalk), every iteration of every
// repeat, once each. A *tensor* is storage; a *name* is a value in an iteration. What a
// repeat carries is one tensor under several names: the yield's operand, the argument of
// the next iteration, the result. Each op that has a node in the traces is a *node* that
// reads the tensors of its operands and writes those of its results. When all nodes are
// known, so is where each tensor is read last: it takes memory from the node that writes
// it to the last one that reads it, and none if nothing does. Live bytes are then summed
// over the nodes.
//
// A slice is a view. What reads it reads the tensor behind it, as long as something else
// still does; the last that does copies the slice, which is a tensor from then on. What a step of a ring takes is never
// copied. What products make piece by piece is one tensor, which is there from the first piece on; other pieces that
// are joined are tensors of their own, and who reads the whole reads all of them. An all_reduce writes over its operand
// if nothing uses that afterwards. Otherwise no op works in place, unless a runtime says so (RuntimeMemory.h), which
// may also keep tensors of its own, let gradients do without operands, and hold results longer. Constants are part of
// the op that uses them.
//
// Who needs the peaks only, and not every node, lets one iteration stand for many equal
// ones (FoldedLoop).
//
// What chunks of a rank hand each other is there from the end of the unit that hands it on: its tensor goes on under
// the other chunk's name. If the unit's own chunk keeps it, or if it is a view or an input, its last node makes a copy.
//
// Tensors are on the device or on the host, where a copy puts them; peaks are found for
// each of the two.
//
// The simulator sees what one microbatch of one virtual stage adds; static memory and
// the other microbatches are the caller's (AccountMemory, and CodeGen's TensorTracker).
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_MEMORY_UNITSIMULATOR_H
#define STAGE_MEMORY_UNITSIMULATOR_H

#include "stage/Memory/Memory.h"
#include "stage/Memory/RuntimeMemory.h"
#include "stage/Walk/FoldedLoop.h"
#include "stage/Walk/UnitWalk.h"
#include "llvm/ADT/MapVector.h"

namespace stage {

/// Local bytes of values in one environment, on ranks of some coordinates, evaluated once each.
class LocalBytes {
public:
  LocalBytes(const Graph &graph, DiagnosticEngine &diags, unsigned environment = 0,
             const SizeBinding &coordinates = SizeBinding())
      : graph(graph), diags(diags), binding(graph.getBinding(environment)) {
    binding.bind(coordinates);
  }
  /// Zero after an error, which is reported once per value.
  int64_t get(const Value *value);
  int64_t evaluate(Size size, SMLoc loc, llvm::StringRef what);
  /// Of the values that were asked for those that may have other bytes in other units.
  std::vector<const Value *> listVarying() const;

private:
  const Graph &graph;
  DiagnosticEngine &diags;
  SizeBinding binding;
  llvm::MapVector<const Value *, int64_t> known; // in the order of questions
};

/// Storage that a unit takes. Nodes are numbered from 0, those of a unit behind those of the units before.
struct UnitTensor {
  const Value *maker; ///< The value for which it was made.
  const Value *value; ///< The value by whose name it is kept.
  int64_t size;
  int iteration;  ///< In which it was made; -1 outside of repeats.
  unsigned first; ///< The node that writes it; of an input the first of its unit.
  int last = -1;  ///< The last node that reads it; none: it is no tensor.
  unsigned names : 22;
  unsigned unit : 3; ///< That makes it.
  MemoryClass kind : 4;
  bool isInput : 1;    ///< Loaded before its unit.
  bool isHandedIn : 1; ///< By a unit of another chunk, at that unit's end.
  bool isView : 1;
  bool isOfRuntime : 1; ///< What a runtime keeps for a gradient.
};

/// What a node reads or writes.
struct TensorAccess {
  unsigned tensor : 31;
  unsigned isWrite : 1;
};

/// The moment when a unit holds most, and what it holds then.
struct UnitPeak {
  ByteCount total = 0;
  const Op *op = nullptr;
  std::optional<int64_t> iteration;
  std::optional<unsigned> node;
};

/// Which tensor a value names in an iteration. Most names are gone before the next iteration; those of values that are
/// kept stand in a row, iteration by iteration, as they are looked up.
class TensorNames {
public:
  std::optional<unsigned> find(IterationValue name) const;
  void set(IterationValue name, unsigned tensor);
  void erase(IterationValue name);

private:
  static constexpr unsigned none = ~0u;
  struct Entry {
    uint64_t iteration = 0;
    unsigned tensor = none;        ///< Of `iteration`.
    std::vector<unsigned> earlier; ///< By iteration.
    const unsigned *find(uint64_t wanted) const;
    unsigned *find(uint64_t wanted) { return const_cast<unsigned *>(std::as_const(*this).find(wanted)); }
  };
  llvm::DenseMap<const Value *, Entry> entries;
};

class UnitSimulator : private UnitWalk {
public:
  /// With `folds`, iterations that are like others have no nodes of their own: FoldedLoop.
  /// Without `memory` software keeps nothing besides.
  UnitSimulator(const Program &program, const Lifetimes &lifetimes, LocalBytes &bytes, bool folds = false,
                const RuntimeMemory *memory = nullptr)
      : program(program), lifetimes(lifetimes), bytes(bytes), folds(folds), memory(memory) {}

  /// Runs the templates of a chain, whose lifetimes these are. Units are numbered by their place.
  void run(const UnitChain &chain);

  /// Of one memory. The lists below are of both.
  const UnitPeak &getPeak(unsigned unit, MemorySpace space = MemorySpace::Device) const {
    return peaks[unsigned(space)][unit];
  }
  /// What is live at a node.
  std::vector<LiveValue> listLive(unsigned node) const;
  /// What is live while a unit stands in front of a node of its own, or behind its last one: what has been made and is
  /// still read. What arrives for the unit is there when it begins.
  std::vector<LiveValue> listPaused(unsigned unit, unsigned node) const;
  /// The bytes of both lists, of a simulation that does not fold.
  struct UnitCurve {
    std::vector<ByteCount> live;   ///< At each node of the unit.
    std::vector<ByteCount> paused; ///< In front of each, and behind the last.
  };
  UnitCurve getCurve(unsigned unit, MemorySpace space) const;
  /// What is kept when a unit has run for those behind it.
  std::vector<LiveValue> listKept(unsigned unit) const;
  /// What is there when a unit begins: what was received for it, and the inputs that it is the first to use.
  std::vector<LiveValue> listReceived(unsigned unit) const;
  std::vector<LiveValue> listArrivingInputs(unsigned unit) const;
  /// The numbers of these inputs.
  std::vector<unsigned> listInputs(unsigned unit) const;
  /// What another chunk handed to a unit.
  std::vector<LiveValue> listHandedIn(unsigned unit) const;
  /// The tensors that a unit hands on, value by value; nothing for what is static in a unit without nodes.
  llvm::ArrayRef<std::optional<unsigned>> getHandedOn(unsigned unit) const { return handedOn[unit]; }

  unsigned getFirstNode(unsigned unit) const { return unit ? ends[unit - 1] : 0; }
  unsigned getNumNodes() const { return nodes.size(); }
  /// Null for messages.
  const Op *getOp(unsigned node) const { return nodes[node].op; }
  /// -1 outside of repeats.
  int getIterationOf(unsigned node) const { return nodes[node].iteration; }
  unsigned getNumTensors() const { return tensors.size(); }
  /// It arrives in a message for its unit.
  bool isReceived(const UnitTensor &tensor) const {
    return !tensor.isInput && !tensor.isHandedIn && nodes[tensor.first].isRecv;
  }
  const UnitTensor &getTensor(unsigned number) const { return tensors[number]; }
  /// Of a value that arrives in several messages each is a tensor: which one this is, counted from 0.
  unsigned getPart(unsigned tensor) const { return parts.lookup(tensor); }
  /// What a node reads and writes.
  llvm::ArrayRef<TensorAccess> getAccesses(unsigned node) const;

private:
  /// There is one per op and iteration of a unit: ProgramLimits says what may be spent on them.
  struct Node {
    const Op *op; ///< Null for messages.
    int iteration;
    unsigned firstAccess : 31;
    unsigned isRecv : 1;
  };
  /// A slice of a tensor, and the last node before it.
  struct View {
    unsigned source;
    int madeAfter;
    bool isPiece; ///< That a step of a ring takes.
  };
  /// An access that is found out about later.
  struct LateAccess {
    unsigned node;
    TensorAccess access;
  };
  /// What is released together, behind a node that computes.
  struct ReleasedTensors {
    std::vector<unsigned> tensors;
    int node = -1;
  };
  void reserve(const UnitChain &chain);
  void fold(const UnitChain &chain);
  /// How many tensors of the unit this one stands for.
  int64_t getCopies(const UnitTensor &tensor) const;
  void enterUnit(const LastUses &uses) override;
  int64_t getNextIteration(const ProgramItem &loop, int64_t iteration) override;
  void visitOp(const Op &op) override;
  void visitReceive(const ProgramItem &item, unsigned slot, IterationValue value) override;
  void visitSend(const ProgramItem &item, unsigned slot, IterationValue value) override;
  void bind(IterationValue from, IterationValue to) override;
  void free(IterationValue value) override;
  void runSlice(const Op &op);
  void runJoin(const Op &op);
  std::vector<unsigned> listSources(unsigned tensor) const;
  static const Value *findJoined(const Value &value);
  void runPermute(const Op &op);
  void runNode(const Op &op);

  /// Nothing for parameters, gradient buffers and constants.
  std::optional<unsigned> find(const Value *value) const { return names.find(getName(value)); }
  unsigned allocate(const Value *value, MemoryClass kind);
  void name(IterationValue value, unsigned tensor);
  std::optional<unsigned> findOverwritten(const Op &op, unsigned result) const;
  void keepForGradient(const Op &op, const OpMemory &kept);
  void hold(const Op &op, const OpMemory &kept);

  void addNode(const Op *op, bool isRecv = false) {
    nodes.push_back({op, getIteration() ? int(*getIteration()) : -1, unsigned(accesses.size()), isRecv});
  }
  unsigned getEndOfAccesses(unsigned node) const {
    return node + 1 < nodes.size() ? nodes[node + 1].firstAccess : accesses.size();
  }
  void access(unsigned tensor, bool isWrite);
  void insert(std::vector<LateAccess> late);
  bool isCopied(const UnitTensor &tensor, const View &view) const;
  void finish();
  void readJoined();
  bool communicates(unsigned node) const;
  std::vector<int> listComputedBefore() const;
  void resolveViews();
  void readParts();
  void holdUntilRelease();
  void holdUntilSent();
  void holdWhileCopied();
  void findLifetimes();
  void holdHandedOn();
  void dropUnread();
  void findPeaks(MemorySpace space);
  bool isKeptAfter(const UnitTensor &tensor, unsigned unit) const {
    return tensor.unit <= unit && tensor.last >= int(ends[unit]);
  }
  /// The node from which on it takes memory. What is received is there when its unit begins, wherever its recv stands.
  unsigned getBegin(const UnitTensor &tensor) const {
    return isReceived(tensor) ? getFirstNode(tensor.unit) : tensor.first;
  }
  bool isPaused(const UnitTensor &tensor, unsigned unit, unsigned node) const {
    unsigned begin = getBegin(tensor);
    bool arrives = tensor.isInput || tensor.isHandedIn || isReceived(tensor);
    return tensor.last >= int(node) && (begin < node || (begin == node && arrives && tensor.unit == unit));
  }
  template <typename Filter> std::vector<LiveValue> list(Filter filter) const;

  const Program &program;
  const Lifetimes &lifetimes;
  LocalBytes &bytes;
  bool folds;
  const RuntimeMemory *memory;

  llvm::DenseMap<unsigned, FoldedLoop> foldedLoops; ///< By number of loop.
  std::vector<UnitTensor> tensors;
  std::vector<Node> nodes;
  std::vector<TensorAccess> accesses;                     ///< In the order of the nodes.
  llvm::DenseMap<unsigned, View> views;                   ///< By number of tensor.
  llvm::DenseMap<unsigned, std::vector<unsigned>> joined; ///< Likewise: the tensors that this one is.
  llvm::DenseMap<unsigned, unsigned> parts;               ///< Likewise, of those that follow the first.
  std::vector<ReleasedTensors> released;
  llvm::DenseMap<std::pair<const Op *, int>, unsigned> keptFor; ///< By op of forward and iteration.
  llvm::DenseMap<const Op *, std::vector<unsigned>> held;       ///< Until an op has run.
  std::vector<unsigned> ends;                                   ///< Per unit: the number of nodes so far.
  std::vector<std::vector<std::optional<unsigned>>> handedOn;   ///< Per unit.
  std::vector<std::vector<const Value *>> handedValues;         ///< And by which names.
  TensorNames names;
  llvm::DenseMap<const Op *, bool> haveNodes;
  unsigned unit = 0;
  bool usesHost = false;                                    ///< Some tensor is there.
  std::array<std::vector<UnitPeak>, numMemorySpaces> peaks; ///< Per unit.
};

} // namespace stage

#endif // STAGE_MEMORY_UNITSIMULATOR_H
