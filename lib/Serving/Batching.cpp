//===- Batching.cpp - which tokens an iteration computes ------------------===//
//
// Invariants: `usedBlocks` is the sum over `running`, whose members hold at least one
// block each; nobody in `waiting` holds one, or is in flight. The sequences of an iteration are in the order of the
// requests that run: a preempted one is the last of these, and nobody is
// admitted unless all others have had their turn.
//
// It ends: the request that was admitted first fits alone, so that it computes tokens in
// each iteration, or is in flight, or waits for one in flight to give up blocks, whoever else has to give way.
//
//===----------------------------------------------------------------------===//
#include "stage/Serving/Batching.h"
#include "PrefixStore.h"
#include "llvm/Support/raw_ostream.h"
#include <cassert>

using namespace stage;
using namespace stage::serving;

Scheduler::Scheduler(const BatchingOptions &options, unsigned replica, bool handsOver)
    : options(options), replica(replica), handsOver(handsOver),
      prefixes(std::make_unique<PrefixStore>(options.prefixStore)) {
  assert(options.tokenBudget > options.drafts && (options.chunk == 0 || options.chunk > options.drafts));
  assert(options.maxSequences > 0 && options.block > 0 && options.acceptedDrafts <= options.ofDrafts);
}

Scheduler::Scheduler(Scheduler &&) noexcept = default;
Scheduler::~Scheduler() = default;

int64_t Scheduler::countBlocks(const Request &request, const BatchingOptions &options) {
  // The last token of an output is never computed; drafts are computed behind the one before it.
  int64_t tokens = request.prompt + (request.output > 1 ? request.output - 1 + options.drafts : 0);
  return (tokens + options.block - 1) / options.block;
}

void Scheduler::add(Request request) {
  auto state = std::make_unique<State>();
  state->facts.request = std::move(request);
  state->facts.replica = replica;
  waiting.push_back(std::move(state));
}

void Scheduler::addHandedOver(FinishedRequest facts) {
  auto state = std::make_unique<State>();
  state->facts = std::move(facts);
  state->facts.replica = replica;
  state->computed = state->begun = state->most = state->facts.request.prompt;
  state->generated = 1;
  state->wasBegun = state->decodes = state->wasSent = true;
  waiting.push_back(std::move(state));
}

/// The blocks of the store that so many tokens of a prompt fill.
llvm::ArrayRef<int64_t> Scheduler::getPrefix(const Request &request, int64_t tokens) const {
  int64_t whole = std::min(tokens, request.prompt) / options.prefixBlock;
  return llvm::makeArrayRef(request.prefix).take_front(size_t(whole));
}

/// Tokens that a request takes with so many computed, or in flight.
int64_t Scheduler::countNew(const State &state, int64_t begun, int64_t budget) const {
  if (state.waitsForToken)
    return 0;
  int64_t wanted = state.facts.request.prompt + state.generated - begun + (state.decodes ? options.drafts : 0);
  if (options.chunk)
    wanted = std::min(wanted, options.chunk);
  return std::min(wanted, budget);
}

/// Takes the blocks that so many tokens need. False, and takes none, if there are not enough.
bool Scheduler::reserve(State &state, int64_t tokens) {
  int64_t more = countBlocks(tokens) - state.blocks;
  if (more <= 0)
    return true;
  if (options.cacheBlocks && more > options.cacheBlocks - usedBlocks)
    return false;
  usedBlocks += more;
  state.blocks += more;
  return true;
}

/// So many of those that run keep their blocks if there is to be room for so many tokens of the i-th.
size_t Scheduler::findKept(size_t i, int64_t tokens) const {
  int64_t missing = countBlocks(tokens) - running[i]->blocks - (options.cacheBlocks - usedBlocks);
  size_t kept = running.size();
  while (kept > i && missing > 0)
    missing -= running[--kept]->blocks;
  return kept;
}

/// S38: the blocks of others are in use by iterations in flight, or may be free when one of these ends.
bool Scheduler::waitsForBlocks(size_t i, size_t kept) const {
  auto others = llvm::makeArrayRef(running).drop_front(kept);
  return (kept == i && numInFlight > 0) ||
         llvm::any_of(others, [](const StatePtr &state) { return state->isInFlight(); });
}

void Scheduler::preemptYoungest(Iteration &iteration) {
  StatePtr state = std::move(running.back());
  assert(!state->isInFlight());
  running.pop_back();
  usedBlocks -= state->blocks;
  state->blocks = 0;
  ++state->facts.preemptions;
  ++iteration.preemptions;
  if (options.preemption == Preemption::Swap) {
    state->isOnHost = true;
    iteration.blocksOut += countBlocks(state->computed); // blocks of rejected drafts have nothing to keep
    iteration.stored.push_back({state->facts.request.index, countSwapped(*state)});
  } else {
    state->computed = state->begun = 0;
    state->decodes = false;
  }
  waiting.push_front(std::move(state));
}

/// Adds a sequence to the iteration; its blocks are there.
void Scheduler::schedule(State &state, int64_t newTokens, Iteration &iteration) const {
  int64_t cached = state.begun, known = state.facts.request.prompt + state.generated;
  Sequence sequence;
  sequence.request = state.facts.request.index;
  sequence.newTokens = newTokens;
  sequence.cachedTokens = cached;
  sequence.decodes = state.decodes;
  sequence.drafts = state.decodes ? newTokens - 1 : 0;
  sequence.samples = cached + newTokens >= known;
  state.begun += newTokens;
  state.waitsForToken = sequence.samples;
  if (!state.wasBegun) {
    state.wasBegun = true;
    state.facts.start = iteration.start;
  }
  iteration.newTokens += newTokens;
  iteration.cachedTokens += cached;
  iteration.attendedPairs += newTokens * cached + newTokens * (newTokens + 1) / 2;
  iteration.twiceArea += newTokens == 1 ? 2 * (cached + 1) : newTokens * (2 * cached + newTokens);
  iteration.sampling += sequence.samples;
  iteration.logits += sequence.samples ? 1 + sequence.drafts : 0;
  iteration.drafts += sequence.drafts;
  iteration.recomputedTokens += std::max<int64_t>(0, std::min(cached + newTokens, state.most) - cached);
  iteration.sequences.push_back(sequence);
}

/// S10.
void Scheduler::admit(Iteration &iteration, int64_t budget) {
  while (!waiting.empty() && budget > 0 && !isFull(iteration) &&
         int64_t(running.size()) < options.maxSequences * options.stages) {
    State &state = *waiting.front();
    const Request &request = state.facts.request;
    llvm::ArrayRef<int64_t> prefix = getPrefix(request, request.prompt);
    bool hasCache = state.isOnHost || state.wasSent;
    prefix = prefix.take_front(hasCache ? 0 : prefixes->match(prefix));
    int64_t computed =
        hasCache ? state.computed
                 : std::min(std::max(request.cached, int64_t(prefix.size()) * options.prefixBlock), request.prompt - 1);
    int64_t newTokens = countNew(state, computed, budget);
    int64_t room = countBlocks(request.prompt + state.generated);
    bool fits =
        options.cacheBlocks == 0 || options.admission == Admission::Chunk || room <= options.cacheBlocks - usedBlocks;
    if (!fits || !reserve(state, computed + newTokens))
      break;
    if (state.isOnHost) {
      iteration.blocksIn += countBlocks(computed);
      iteration.loaded.push_back({request.index, countSwapped(state)});
    } else {
      iteration.loadedTokens += computed;
      if (computed)
        iteration.loaded.push_back({request.index, computed});
      prefixes->use(prefix);
    }
    state.isOnHost = state.wasSent = false;
    state.computed = state.begun = computed;
    state.most = std::max(state.most, computed);
    budget -= newTokens;
    schedule(state, newTokens, iteration);
    running.push_back(std::move(waiting.front()));
    waiting.pop_front();
  }
}

const Request *Scheduler::begin(int64_t start, Iteration &iteration) {
  std::vector<Sequence> sequences = std::move(iteration.sequences);
  sequences.clear();
  iteration = Iteration();
  iteration.sequences = std::move(sequences); // its memory
  iteration.replica = replica;
  iteration.start = start;
  int64_t budget = options.tokenBudget;
  bool hasRoom = true;
  for (size_t i = 0; i < running.size() && budget > 0 && hasRoom && !isFull(iteration); ++i) {
    State &state = *running[i];
    int64_t newTokens = countNew(state, state.begun, budget);
    if (newTokens == 0)
      continue;
    if (!reserve(state, state.begun + newTokens)) {
      size_t kept = findKept(i, state.begun + newTokens);
      hasRoom = !waitsForBlocks(i, kept);
      if (!hasRoom)
        break;
      if (options.preemption == Preemption::Refuse)
        return &state.facts.request;
      while (running.size() > kept)
        preemptYoungest(iteration); // which may be this one
      if (kept == i)
        break;
      reserve(state, state.begun + newTokens);
    }
    schedule(state, newTokens, iteration);
    budget -= newTokens;
  }
  if (iteration.preemptions == 0 && hasRoom)
    admit(iteration, budget);
  iteration.blocks = usedBlocks;
  assert(!iteration.sequences.empty() || (iteration.preemptions == 0 && (getNumRequests() == 0 || numInFlight > 0)));
  if (!iteration.sequences.empty()) {
    iteration.stored.insert(iteration.stored.end(), filled.begin(), filled.end());
    filled.clear();
    ++numInFlight;
  }
  return nullptr;
}

/// How many of the first `drafts` drafts of a request are accepted.
static int64_t countAccepted(int64_t drafts, const BatchingOptions &options) {
  return int64_t(__int128(drafts) * options.acceptedDrafts / options.ofDrafts);
}

void Scheduler::end(const Iteration &iteration, int64_t time,
                    llvm::function_ref<void(const FinishedRequest &)> finished) {
  size_t kept = 0, next = 0;
  for (size_t i = 0; i < running.size(); ++i) {
    State &state = *running[i];
    if (next < iteration.sequences.size() && iteration.sequences[next].request == state.facts.request.index) {
      const Sequence &sequence = iteration.sequences[next++];
      FinishedRequest &facts = state.facts;
      facts.drafts += sequence.drafts;
      int64_t accepted = countAccepted(facts.drafts, options) - facts.accepted;
      facts.accepted += accepted;
      int64_t before = state.computed;
      state.computed += sequence.newTokens - sequence.drafts + accepted;
      if (!facts.request.prefix.empty())
        if (size_t blocks = prefixes->use(
                getPrefix(facts.request, state.computed).drop_front(getPrefix(facts.request, before).size())))
          filled.push_back({facts.request.index, int64_t(blocks) * options.prefixBlock});
      state.most = std::max(state.most, state.computed);
      state.decodes = sequence.samples;
      if (sequence.samples) {
        state.begun = state.computed; // behind it rejected drafts
        state.waitsForToken = false;
        if (state.generated == 0)
          facts.firstToken = time;
        state.generated = std::min(state.generated + 1 + accepted, facts.request.output);
      }
      if (state.generated == facts.request.output || (handsOver && state.generated > 0)) {
        facts.end = time;
        usedBlocks -= state.blocks;
        finished(facts);
        continue;
      }
    }
    if (kept != i)
      running[kept] = std::move(running[i]);
    ++kept;
  }
  assert(next == iteration.sequences.size());
  numInFlight -= !iteration.sequences.empty();
  running.resize(kept);
}

std::string stage::serving::getName(const Iteration &iteration, bool showReplica) {
  constexpr size_t mostChunks = 4; // beyond, they are summed up
  struct Sum {
    int64_t count = 0, newTokens = 0, cachedTokens = 0;
    void add(const Sequence &sequence) {
      ++count;
      newTokens += sequence.newTokens;
      cachedTokens += sequence.cachedTokens;
    }
  } chunks, decodes;
  std::string name = "i" + std::to_string(iteration.number), listed;
  if (showReplica)
    name += " r" + std::to_string(iteration.replica);
  auto describe = [](int64_t newTokens, int64_t cachedTokens) {
    return "+" + std::to_string(newTokens) + "@" + std::to_string(cachedTokens);
  };
  for (const Sequence &sequence : iteration.sequences) {
    (sequence.decodes ? decodes : chunks).add(sequence);
    if (!sequence.decodes && chunks.count <= int64_t(mostChunks))
      listed += " p" + std::to_string(sequence.request) + describe(sequence.newTokens, sequence.cachedTokens);
  }
  if (chunks.count > int64_t(mostChunks))
    listed = " " + std::to_string(chunks.count) + "p" + describe(chunks.newTokens, chunks.cachedTokens);
  name += listed;
  if (decodes.count)
    name += " " + std::to_string(decodes.count) + "d" + describe(decodes.newTokens, decodes.cachedTokens);
  return iteration.sequences.empty() ? name + " idle" : name;
}
