//===- UnitLifetimes.cpp - where the tensors of a unit begin and end ------===//
//
// The second half of UnitSimulator, when all nodes and what they access are known:
//
//   readJoined      who reads what is joined of several tensors reads all of them
//   resolveViews    reads of slices become reads of the tensor behind them, or of a copy
//   readParts       who reads what arrived in several messages reads all of it
//   holdUntilRelease  what is released together is there until then
//   holdUntilSent   what a permute sends is there while the next op computes
//   holdWhileCopied  what goes to the host or comes from it is there as long as that may take
//   findLifetimes   a tensor takes memory until its last read
//   findPeaks       live bytes are summed over the nodes
//
//===----------------------------------------------------------------------===//
#include "stage/Memory/UnitSimulator.h"
#include "llvm/ADT/MapVector.h"
#include <numeric>

using namespace stage;

/// Puts accesses behind those that their nodes have.
void UnitSimulator::insert(std::vector<LateAccess> late) {
  llvm::stable_sort(late, [](const LateAccess &a, const LateAccess &b) { return a.node < b.node; });
  size_t from = accesses.size(), to = from + late.size();
  accesses.resize(to);
  for (unsigned node = nodes.size(); to > from;) {
    --node;
    for (; !late.empty() && late.back().node == node; late.pop_back())
      accesses[--to] = late.back().access;
    while (from > nodes[node].firstAccess)
      accesses[--to] = accesses[--from];
    nodes[node].firstAccess = to;
  }
}

void UnitSimulator::readJoined() {
  std::vector<LateAccess> more;
  for (unsigned node = 0; node < nodes.size() && !joined.empty(); ++node)
    for (unsigned i = nodes[node].firstAccess; i < getEndOfAccesses(node); ++i)
      if (auto whole = joined.find(accesses[i].tensor); whole != joined.end()) {
        for (unsigned part : llvm::drop_begin(whole->second))
          more.push_back({node, {part, /*isWrite=*/false}});
        accesses[i].tensor = whole->second.front();
      }
  insert(std::move(more));
}

/// A view of what a node of its own unit made is copied when nothing else reads that any more. Views of inputs, of what
/// was received, handed in and of what an earlier unit kept hold what they look at.
bool UnitSimulator::isCopied(const UnitTensor &tensor, const View &view) const {
  const UnitTensor &source = tensors[view.source];
  return !view.isPiece && !source.isInput && !source.isHandedIn && source.unit == tensor.unit &&
         nodes[source.first].op && view.madeAfter >= int(source.first);
}

bool UnitSimulator::communicates(unsigned node) const {
  return !nodes[node].op || isCommunication(nodes[node].op->kind);
}

/// Of each node the last of those that compute for which it waits, itself included. What computes waits for all before
/// that do.
std::vector<int> UnitSimulator::listComputedBefore() const {
  std::vector<int> before, made(tensors.size(), -1); // by node, and by tensor
  llvm::DenseMap<const Stream *, int> chains;
  for (unsigned node = 0; node < nodes.size(); ++node) {
    int last = node;
    if (communicates(node) && !nodes[node].isRecv) {
      int &chain = chains.try_emplace(nodes[node].op ? nodes[node].op->stream : program.graph->getMessageStream(), -1)
                       .first->second;
      for (TensorAccess access : getAccesses(node))
        for (unsigned source : listSources(access.tensor))
          chain = std::max(chain, access.isWrite ? -1 : made[source]);
      last = chain;
    } else if (nodes[node].isRecv) {
      last = -1;
    }
    for (TensorAccess access : getAccesses(node))
      if (access.isWrite)
        made[access.tensor] = last;
    before.push_back(last);
  }
  return before;
}

/// Reads of views become reads of the tensor behind them or of their copies.
void UnitSimulator::resolveViews() {
  if (views.empty())
    return;
  std::vector<int> end; // where a tensor is read last, by itself or as a view
  std::vector<bool> isRead(tensors.size(), false), isCopyMade(tensors.size(), false), isHeld(tensors.size(), false);
  auto isCopied = [&](unsigned number, const View &view) {
    return !isHeld[view.source] && this->isCopied(tensors[number], view);
  };
  auto readUntil = [&](unsigned tensor, unsigned node) { end[tensor] = std::max(end[tensor], int(node)); };
  auto findEnds = [&] {
    end.assign(tensors.size(), -1);
    for (unsigned node = 0; node < nodes.size(); ++node)
      for (TensorAccess access : getAccesses(node)) {
        if (access.isWrite)
          continue;
        isRead[access.tensor] = true;
        if (!tensors[access.tensor].isView)
          readUntil(access.tensor, node);
        else if (View view = views.lookup(access.tensor); !isCopied(access.tensor, view))
          readUntil(view.source, node);
      }
    for (unsigned number = 0; number < tensors.size(); ++number)
      if (isRead[number] && tensors[number].isView)
        if (View view = views.lookup(number); isCopied(number, view))
          readUntil(view.source, view.madeAfter);
  };
  findEnds();
  // A message or a collective copies nothing besides, and who reads the slice would not wait for it; nor would a node
  // that only stands there wait for a collective that makes the tensor, or a collective that moves the slice for what
  // is computed beside it.
  auto reads = [&](unsigned node, unsigned tensor) {
    return llvm::any_of(getAccesses(node),
                        [&](TensorAccess access) { return access.tensor == tensor && !access.isWrite; });
  };
  std::vector<int> computedBefore = listComputedBefore(), beforeReaders(tensors.size(), int(nodes.size()));
  for (unsigned node = 0; node < nodes.size(); ++node)
    for (TensorAccess access : getAccesses(node))
      if (tensors[access.tensor].isView && int(node) > end[views.lookup(access.tensor).source])
        beforeReaders[access.tensor] = std::min(beforeReaders[access.tensor], computedBefore[node]);
  bool holds = false;
  for (unsigned number = 0; number < tensors.size(); ++number)
    if (isRead[number] && tensors[number].isView)
      if (View view = views.lookup(number);
          isCopied(number, view) && end[view.source] > int(tensors[view.source].first))
        holds |= isHeld[view.source] =
            communicates(end[view.source]) || beforeReaders[number] < end[view.source] ||
            (communicates(tensors[view.source].first) && !reads(end[view.source], view.source));
  if (holds)
    findEnds();
  std::vector<LateAccess> copies;
  struct Parts {
    int64_t bytes;
    unsigned firstReader;
  };
  llvm::DenseMap<unsigned, Parts> parts; // of tensors that only slices read
  for (unsigned node = 0; node < nodes.size(); ++node)
    for (unsigned i = nodes[node].firstAccess; i < getEndOfAccesses(node); ++i) {
      unsigned number = accesses[i].tensor;
      UnitTensor &tensor = tensors[number];
      if (!tensor.isView)
        continue;
      View view = views.lookup(number);
      if (!isCopied(number, view) || int(node) <= end[view.source]) {
        accesses[i].tensor = view.source;
      } else if (!isCopyMade[number]) {
        isCopyMade[number] = true;
        tensor.first = end[view.source];
        if (tensor.first != tensors[view.source].first) {
          copies.push_back({tensor.first, {view.source, /*isWrite=*/false}});
        } else {
          Parts &known = parts.try_emplace(view.source, Parts{0, node}).first->second;
          known.bytes += tensor.size;
        }
        copies.push_back({tensor.first, {number, /*isWrite=*/true}});
      }
    }
  // The op that makes such a tensor makes all of it: what no slice looks at is there until the next op of its stream,
  // or, where that is another one's turn, until a slice is read.
  for (unsigned number = 0; number < tensors.size() && !parts.empty(); ++number) {
    UnitTensor &whole = tensors[number];
    auto slices = parts.find(number);
    if (slices == parts.end() || slices->second.bytes >= whole.size)
      continue;
    whole.size -= slices->second.bytes;
    unsigned next = whole.first + 1;
    if (next < ends[whole.unit] && communicates(next) != communicates(whole.first))
      next = slices->second.firstReader;
    if (next < ends[whole.unit])
      copies.push_back({next, {number, /*isWrite=*/false}});
  }
  insert(std::move(copies));
}

void UnitSimulator::readParts() {
  std::vector<LateAccess> more;
  for (unsigned node = 0; node < nodes.size() && !parts.empty(); ++node)
    for (TensorAccess access : getAccesses(node))
      for (unsigned part = access.tensor + 1; !access.isWrite && parts.count(part); ++part)
        more.push_back({node, {part, /*isWrite=*/false}});
  insert(std::move(more));
}

/// The last op of a unit, or the last that reads something of its bucket, is said to read all of it.
void UnitSimulator::holdUntilRelease() {
  if (released.empty())
    return;
  std::vector<int> last(tensors.size(), -1);
  for (unsigned node = 0; node < nodes.size(); ++node)
    for (TensorAccess access : getAccesses(node))
      if (!access.isWrite)
        last[access.tensor] = node;
  std::vector<LateAccess> reads;
  for (const ReleasedTensors &together : released) {
    int end = together.node;
    for (unsigned tensor : together.tensors)
      end = std::max(end, last[tensor]);
    for (unsigned tensor : together.tensors)
      if (last[tensor] < end && end >= int(tensors[tensor].first))
        reads.push_back({unsigned(end), {tensor, /*isWrite=*/false}});
  }
  insert(std::move(reads));
}

/// A permute's send runs beside what the stream for computation does next, which is said to read what is sent as well.
/// It has ended where that reads what the permute receives: all ranks of a ring send at a time. Nor is that said of
/// what was received and is sent on: what is computed next need not wait for it, and what uses it does.
void UnitSimulator::holdUntilSent() {
  std::vector<LateAccess> reads;
  std::optional<unsigned> beside;
  auto isRead = [&](unsigned tensor, unsigned node) {
    return llvm::any_of(getAccesses(node),
                        [&](TensorAccess access) { return access.tensor == tensor && !access.isWrite; });
  };
  auto computes = [&](unsigned node) {
    const Op *op = nodes[node].op;
    return op && op->kind == OpKind::Compute && !op->stream;
  };
  auto waitsFor = [&](const UnitTensor &tensor) {
    return tensor.isInput || tensor.isHandedIn || computes(tensor.first);
  };
  for (unsigned node = nodes.size(), of = ends.size() - 1; node-- > 0;) {
    for (; node < getFirstNode(of); --of)
      beside.reset();
    if (computes(node))
      beside = node;
    if (!nodes[node].op || nodes[node].op->kind != OpKind::Permute || !beside)
      continue;
    for (TensorAccess sent : getAccesses(node))
      if (!sent.isWrite && waitsFor(tensors[sent.tensor]) && !isRead(sent.tensor, *beside) &&
          !isRead(getAccesses(node - 1).front().tensor, *beside)) // its recv stands before it
        reads.push_back({*beside, sent});
  }
  insert(std::move(reads));
}

/// What an iteration stores is there until another one that waits for the store (if any does) begins to compute, else
/// until the unit ends. What one loads is there from the end of the earlier iteration for which the load waits, in the
/// first ones from the end of what is computed before the repeat. What is loaded besides is there from the end of what
/// is computed before it.
void UnitSimulator::holdWhileCopied() {
  std::vector<LateAccess> reads;
  using OpInIteration = std::pair<const Op *, unsigned>; // iterations are numbered in the order in which they run
  for (unsigned of = 0; of < ends.size(); ++of) {
    auto isOfCopies = [](const Node &node) { return node.op && isCopy(node.op->kind); };
    if (llvm::none_of(llvm::ArrayRef<Node>(nodes).slice(getFirstNode(of), ends[of] - getFirstNode(of)), isOfCopies))
      continue;
    llvm::DenseSet<const Op *> awaited;
    for (unsigned node = getFirstNode(of); node < ends[of]; ++node)
      if (const Op *op = nodes[node].op)
        for (const OrderEdge &edge : op->after)
          if (edge.iterations && (op->kind == OpKind::Fetch || edge.value->getOp()->kind == OpKind::Offload))
            awaited.insert(edge.value->getOp());
    struct Loop {
      unsigned entry, number; ///< Behind what is computed before it; the iteration that runs.
      int iteration;
    };
    llvm::DenseMap<const Op *, Loop> loops;
    llvm::DenseMap<OpInIteration, unsigned> ran, waiting; // what is awaited, and who is the first to wait for it
    std::vector<std::pair<unsigned, unsigned>> stores;    // nodes, each with its iteration
    std::vector<unsigned> computedBefore;                 // per node: the last one that computes, or none
    llvm::DenseMap<const Stream *, unsigned> lastStarts;  // loads of a stream begin in their order
    unsigned ready = getFirstNode(of); // behind what has been computed so far, and what was received before
    while (ready < ends[of] && nodes[ready].isRecv)
      ++ready;
    auto runs = [&](unsigned node, const Op &op, const Loop &loop) {
      std::optional<unsigned> start;
      bool isAhead = false;
      for (const OrderEdge &edge : op.after) {
        isAhead |= edge.iterations != 0;
        if (!edge.iterations || edge.iterations > loop.number)
          continue;
        OpInIteration before(edge.value->getOp(), loop.number - edge.iterations);
        if (op.kind != OpKind::Fetch)
          waiting.try_emplace(before, node);
        else if (auto known = ran.find(before); known != ran.end())
          start = std::max(start.value_or(0), known->second + 1);
      }
      if (op.kind != OpKind::Fetch)
        return;
      unsigned &lastStart = lastStarts[op.stream];
      lastStart = std::max(lastStart, isAhead ? start.value_or(loop.entry) : ready);
      for (TensorAccess access : getAccesses(node))
        if (access.isWrite)
          tensors[access.tensor].first = lastStart;
    };
    std::optional<unsigned> computed;
    for (unsigned node = getFirstNode(of); node < ends[of]; ++node) {
      computedBefore.push_back(computed.value_or(0));
      const Op *op = nodes[node].op, *repeat = op ? op->getBlock()->getParent() : nullptr;
      bool isInLoop = repeat && !op->isPrefetched;
      Loop &loop = loops.try_emplace(isInLoop ? repeat : nullptr, Loop{ready, 0, nodes[node].iteration}).first->second;
      if (op && !op->stream && getStreamKind(*op) == StreamKind::Computation) {
        computed = node;
        ready = node + 1;
      }
      if (op && !isInLoop)
        runs(node, *op, loop);
      if (!isInLoop)
        continue;
      loop.number += std::exchange(loop.iteration, nodes[node].iteration) != nodes[node].iteration;
      if (awaited.contains(op))
        ran[{op, loop.number}] = node;
      if (op->kind == OpKind::Offload)
        stores.push_back({node, loop.number});
      runs(node, *op, loop);
    }
    // Stores of a stream end in their order: who waits for the last one of an iteration waits for all.
    llvm::DenseMap<const Stream *, unsigned> until;
    for (size_t i = stores.size(); i-- > 0;) {
      auto [node, number] = stores[i];
      const Op *op = nodes[node].op;
      if (i + 1 < stores.size() && stores[i + 1].second != number)
        until.clear();
      if (awaited.contains(op)) {
        auto found = waiting.find({op, number});
        until[op->stream] =
            found == waiting.end() ? computed.value_or(0) : computedBefore[found->second - getFirstNode(of)];
      }
      if (unsigned last = until.lookup(op->stream); last > node)
        for (TensorAccess access : getAccesses(node))
          if (!access.isWrite)
            reads.push_back({last, access});
    }
  }
  insert(std::move(reads));
}

void UnitSimulator::findLifetimes() {
  for (unsigned node = 0; node < nodes.size(); ++node)
    for (TensorAccess access : getAccesses(node))
      if (!access.isWrite)
        tensors[access.tensor].last = node;
  // What arrives is there, whether anything reads it or not: then its recv frees it. What nothing reads of the rest is
  // not made.
  for (unsigned node = 0; node < nodes.size(); ++node)
    if (nodes[node].isRecv)
      for (TensorAccess access : getAccesses(node))
        tensors[access.tensor].last = std::max(tensors[access.tensor].last, int(node));
  holdHandedOn();
  dropUnread();
  // The outputs of inference are made, though only the caller reads them, and so is what takes the place of a state.
  if (!program.graph->training)
    for (UnitTensor &tensor : tensors)
      if (tensor.last < 0 && tensor.first < nodes.size() &&
          llvm::any_of(tensor.maker->getUses(), [](const std::pair<Op *, unsigned> &use) {
            return use.first->kind == OpKind::Return || use.first->kind == OpKind::Write;
          }))
        tensor.last = tensor.first;
}

/// What a unit hands on is there until the unit ends. Where its own chunk keeps it, and of a view, an input or
/// something static, it hands on a copy, which its last node makes.
void UnitSimulator::holdHandedOn() {
  std::vector<LateAccess> copies;
  for (unsigned number = 0; number < handedOn.size(); ++number) {
    int end = int(ends[number]) - 1;
    bool hasNodes = ends[number] > getFirstNode(number);
    for (auto [handed, value] : llvm::zip(handedOn[number], handedValues[number])) {
      bool isOwn = handed && !tensors[*handed].isView && !tensors[*handed].isInput && tensors[*handed].unit == number;
      bool isKept = handed && tensors[*handed].last > end;
      if (handed) {
        UnitTensor &held = tensors[tensors[*handed].isView ? views.lookup(*handed).source : *handed];
        held.last = std::max(held.last, end);
      }
      if (isOwn && !isKept)
        continue;
      handed.reset();
      if (!hasNodes)
        continue;
      handed = tensors.size();
      UnitTensor &copy = tensors.emplace_back();
      copy.maker = copy.value = value;
      copy.size = bytes.get(value);
      copy.iteration = -1;
      copy.first = copy.last = end;
      copy.unit = number;
      copy.kind = MemoryClass::Temporaries;
      copy.names = copy.isInput = copy.isHandedIn = copy.isView = copy.isOfRuntime = 0;
      if (!getLoop(value))
        parts[*handed] = 1; // else it would go by the name of what it is a copy of
      copies.push_back({unsigned(end), {*handed, /*isWrite=*/true}});
    }
  }
  if (!copies.empty())
    insert(std::move(copies));
}

void UnitSimulator::dropUnread() {
  unsigned to = 0;
  for (unsigned node = 0; node < nodes.size(); ++node) {
    unsigned from = nodes[node].firstAccess, end = getEndOfAccesses(node);
    nodes[node].firstAccess = to;
    for (; from < end; ++from)
      if (tensors[accesses[from].tensor].last >= 0)
        accesses[to++] = accesses[from];
  }
  accesses.resize(to);
}

int64_t UnitSimulator::getCopies(const UnitTensor &tensor) const {
  if (!folds || tensor.iteration < 0 || !isKeptAfter(tensor, tensor.unit))
    return 1; // gone before the next iteration needs one
  auto folded = foldedLoops.find(getLoop(tensor.maker)->loop);
  return folded == foldedLoops.end() ? 1 : folded->second.getCopies(tensor.iteration);
}

void UnitSimulator::findPeaks(MemorySpace space) {
  std::vector<UnitPeak> &peaksOfUnits = peaks[unsigned(space)];
  peaksOfUnits.resize(ends.size());
  if (space == MemorySpace::Host && !usesHost)
    return;
  std::vector<ByteCount> change(nodes.size() + 1, 0);
  for (UnitTensor &tensor : tensors) {
    if (tensor.last < 0 || tensor.maker->type.space != space)
      continue;
    ByteCount size = ByteCount(tensor.size) * getCopies(tensor);
    change[getBegin(tensor)] += size;
    change[tensor.last + 1] -= size;
    if (isKeptAfter(tensor, tensor.unit) && tensor.kind != MemoryClass::Parameters)
      tensor.kind = MemoryClass::Activations;
  }
  ByteCount live = 0;
  for (unsigned node = 0, of = 0; node < nodes.size(); ++node) {
    live += change[node];
    while (ends[of] <= node)
      ++of;
    UnitPeak &peak = peaksOfUnits[of];
    if (!peak.node || live > peak.total)
      peak = {live, nodes[node].op, std::nullopt, node};
    if (peak.node == node && nodes[node].iteration >= 0)
      peak.iteration = nodes[node].iteration;
  }
}

void UnitSimulator::finish() {
  readJoined();
  resolveViews();
  readParts();
  holdUntilRelease();
  holdUntilSent();
  holdWhileCopied();
  findLifetimes();
  findPeaks(MemorySpace::Device);
  findPeaks(MemorySpace::Host);
}

llvm::ArrayRef<TensorAccess> UnitSimulator::getAccesses(unsigned node) const {
  unsigned first = nodes[node].firstAccess;
  return llvm::ArrayRef<TensorAccess>(accesses).slice(first, getEndOfAccesses(node) - first);
}

template <typename Filter> std::vector<LiveValue> UnitSimulator::list(Filter filter) const {
  llvm::MapVector<std::pair<const Value *, unsigned>, LiveValue> live;
  for (const UnitTensor &tensor : tensors) {
    if (tensor.last < 0 || !filter(tensor))
      continue;
    LiveValue &entry = live[{tensor.value, unsigned(tensor.kind)}];
    entry.value = tensor.value;
    entry.kind = tensor.kind;
    int64_t copies = getCopies(tensor);
    entry.copies += tensor.isOfRuntime || parts.count(&tensor - tensors.data()) ? 0 : copies;
    entry.bytes += ByteCount(tensor.size) * copies;
  }
  std::vector<LiveValue> result;
  for (auto &entry : live)
    result.push_back(entry.second);
  return result;
}

std::vector<LiveValue> UnitSimulator::listLive(unsigned node) const {
  return list([&](const UnitTensor &tensor) { return getBegin(tensor) <= node && tensor.last >= int(node); });
}

std::vector<LiveValue> UnitSimulator::listPaused(unsigned unit, unsigned node) const {
  return list([&](const UnitTensor &tensor) { return isPaused(tensor, unit, node); });
}

UnitSimulator::UnitCurve UnitSimulator::getCurve(unsigned unit, MemorySpace space) const {
  unsigned first = getFirstNode(unit), end = ends[unit];
  // Changes from one node to the next.
  std::vector<ByteCount> live(end - first + 1), paused(end - first + 2);
  auto add = [&](std::vector<ByteCount> &changes, unsigned from, unsigned to, ByteCount bytes) {
    from = std::max(from, first);
    to = std::min<unsigned>(to, first + unsigned(changes.size()) - 1);
    if (from >= to)
      return;
    changes[from - first] += bytes;
    changes[to - first] -= bytes;
  };
  for (const UnitTensor &tensor : tensors) {
    if (tensor.last < int(first) || tensor.maker->type.space != space)
      continue;
    unsigned begin = getBegin(tensor), behind = unsigned(tensor.last) + 1;
    add(live, begin, behind, tensor.size);
    if (begin <= end)
      add(paused, isPaused(tensor, unit, begin) ? begin : begin + 1, behind, tensor.size);
  }
  std::partial_sum(live.begin(), live.end(), live.begin());
  std::partial_sum(paused.begin(), paused.end(), paused.begin());
  live.pop_back();
  paused.pop_back();
  return {std::move(live), std::move(paused)};
}

std::vector<LiveValue> UnitSimulator::listKept(unsigned unit) const {
  return list([&](const UnitTensor &tensor) { return isKeptAfter(tensor, unit); });
}

std::vector<LiveValue> UnitSimulator::listHandedIn(unsigned unit) const {
  return list([&](const UnitTensor &tensor) { return tensor.isHandedIn && tensor.unit == unit; });
}

std::vector<LiveValue> UnitSimulator::listReceived(unsigned unit) const {
  std::vector<LiveValue> received =
      list([&](const UnitTensor &tensor) { return tensor.unit == unit && isReceived(tensor); });
  for (LiveValue &value : received)
    value.kind = MemoryClass::Buffers; // until its unit begins
  return received;
}

std::vector<LiveValue> UnitSimulator::listArrivingInputs(unsigned unit) const {
  return list([&](const UnitTensor &tensor) { return tensor.unit == unit && tensor.isInput; });
}

std::vector<unsigned> UnitSimulator::listInputs(unsigned unit) const {
  std::vector<unsigned> inputs;
  for (unsigned number = 0; number < tensors.size(); ++number)
    if (const UnitTensor &tensor = tensors[number]; tensor.isInput && tensor.last >= 0 && tensor.unit == unit)
      inputs.push_back(number);
  return inputs;
}
