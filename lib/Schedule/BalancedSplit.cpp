//===- BalancedSplit.cpp - iterations for stages that have as much to do --===//
#include "stage/Schedule/BalancedSplit.h"
#include "llvm/ADT/SmallVector.h"
#include <algorithm>

using namespace stage;

llvm::StringRef stage::getName(Balance balance) {
  return balance == Balance::Flops ? "flops" : balance == Balance::Memory ? "memory" : "";
}

namespace {
using Load = __int128;
constexpr Load maxLoad = Load(1) << 126;

class Splitter {
public:
  Splitter(const ChainLoad &chain, llvm::ArrayRef<int64_t> inFlight) : chain(chain), inFlight(inFlight) {
    begins.push_back(0);
    sums.push_back({});
    for (const ChainLoad::Run &run : chain.runs) {
      begins.push_back(begins.back() + run.count);
      sums.push_back({sums.back().once + run.load.once * run.count,
                      sums.back().perMicrobatch + run.load.perMicrobatch * run.count});
      largest.once = std::max(largest.once, run.load.once);
      largest.perMicrobatch = std::max(largest.perMicrobatch, run.load.perMicrobatch);
    }
  }

  std::optional<std::vector<int64_t>> run() {
    Load above = 0; // all of it on one virtual stage
    for (unsigned v = 0; v < getNum(); ++v)
      above = std::max(above, getLoad(v, 0, getEnd()));
    above += weigh(chain.before, inFlight.front()) + weigh(chain.behind, inFlight.back());
    if (!reaches(above))
      return std::nullopt;
    Load below = -1;
    while (above - below > 1) {
      Load middle = below + (above - below) / 2;
      (reaches(middle) ? above : below) = middle;
    }
    reaches(above);
    return choose(above);
  }

private:
  /// Places between iterations: [first, second].
  using Places = llvm::SmallVector<std::pair<int64_t, int64_t>, 2>;

  unsigned getNum() const { return inFlight.size(); }
  int64_t getEnd() const { return begins.back(); }
  static Load weigh(const StageLoad &load, int64_t times) { return load.once + load.perMicrobatch * times; }

  Load getFixed(unsigned v) const {
    return (v == 0 ? weigh(chain.before, inFlight[v]) : 0) + (v + 1 == getNum() ? weigh(chain.behind, inFlight[v]) : 0);
  }
  int64_t getLeast(unsigned v) const { return getFixed(v) == 0; }

  /// Of the iterations before a place.
  Load getSum(unsigned v, int64_t place) const {
    size_t run = std::upper_bound(begins.begin(), begins.end(), place) - begins.begin() - 1;
    Load sum = weigh(sums[run], inFlight[v]);
    return run < chain.runs.size() ? sum + (place - begins[run]) * weigh(chain.runs[run].load, inFlight[v]) : sum;
  }
  Load getLoad(unsigned v, int64_t begin, int64_t end) const { return getFixed(v) + getSum(v, end) - getSum(v, begin); }

  /// The last place to which a virtual stage can run from this one; the one before if it cannot run at all.
  int64_t getLastEnd(unsigned v, int64_t begin, Load most) const {
    Load budget = most - getFixed(v);
    return budget < 0 ? begin - 1 : findPlace(v, getSum(v, begin) + budget);
  }
  /// The first place from which it can run to this one.
  int64_t getFirstBegin(unsigned v, int64_t end, Load most) const {
    Load least = getSum(v, end) - (most - getFixed(v)); // of what is before that place
    return least <= 0 ? 0 : findPlace(v, least - 1) + 1;
  }
  /// The last place before which iterations add up to no more than this.
  int64_t findPlace(unsigned v, Load most) const {
    size_t run = std::partition_point(sums.begin(), sums.end(),
                                      [&](const StageLoad &sum) { return weigh(sum, inFlight[v]) <= most; }) -
                 sums.begin() - 1;
    if (run == chain.runs.size())
      return getEnd();
    // The run has a load: else its end were no further than its begin.
    return begins[run] + int64_t((most - weigh(sums[run], inFlight[v])) / weigh(chain.runs[run].load, inFlight[v]));
  }

  /// Places that virtual stages up to and with v can reach.
  Places goOn(unsigned v, const Places &from, Load most) const {
    Places places;
    auto add = [&](int64_t first, int64_t last) {
      if (last < first)
        return;
      if (!places.empty() && first <= places.back().second + 1)
        places.back().second = std::max(places.back().second, last);
      else
        places.emplace_back(first, last);
    };
    int64_t least = getLeast(v);
    for (auto [first, last] : from) {
      if (!least || getFixed(v) + weigh(largest, inFlight[v]) <= most) {
        if (last = std::min(last, getEnd() - least); first <= last && getFixed(v) <= most)
          add(first + least, getLastEnd(v, last, most));
        continue;
      }
      // Only from where the next iteration is not too much by itself.
      for (size_t run = std::upper_bound(begins.begin(), begins.end(), first) - begins.begin() - 1;
           run < chain.runs.size() && begins[run] <= last; ++run)
        if (getFixed(v) + weigh(chain.runs[run].load, inFlight[v]) <= most)
          add(std::max(first, begins[run]) + 1, getLastEnd(v, std::min(last, begins[run + 1] - 1), most));
    }
    return places;
  }

  bool reaches(Load most) {
    reached.assign(1, {{0, 0}});
    for (unsigned v = 0; v < getNum(); ++v)
      reached.push_back(goOn(v, reached.back(), most));
    return !reached.back().empty() && reached.back().back().second == getEnd();
  }

  std::vector<int64_t> choose(Load most) const {
    std::vector<int64_t> split(getNum());
    int64_t end = getEnd();
    for (unsigned v = getNum(); v-- > 0;) {
      Load share = (getLoad(v, 0, end) + (v ? getFixed(0) : 0)) / (v + 1);
      int64_t begin =
          chooseBegin(reached[v], getFirstBegin(v, end, most), end - getLeast(v), getFirstBegin(v, end, share));
      split[v] = end - begin;
      end = begin;
    }
    return split;
  }

  /// Of the places in [first, last] the first one that is not before `wanted`, else the last one.
  static int64_t chooseBegin(const Places &places, int64_t first, int64_t last, int64_t wanted) {
    int64_t chosen = first;
    for (auto [low, high] : places) {
      int64_t from = std::max(low, first), to = std::min(high, last);
      if (from > to)
        continue;
      chosen = std::clamp(wanted, from, to);
      if (chosen >= wanted)
        break;
    }
    return chosen;
  }

  const ChainLoad &chain;
  llvm::ArrayRef<int64_t> inFlight;
  std::vector<int64_t> begins; ///< Of each run, and the end.
  std::vector<StageLoad> sums; ///< Of what is before each run, and of all.
  StageLoad largest;           ///< At least that of any iteration.
  std::vector<Places> reached; ///< By each virtual stage's predecessors, and by the last one.
};
} // namespace

/// Whether all loads together, on each virtual stage, are numbers that can be added up.
static bool isInRange(const ChainLoad &chain, llvm::ArrayRef<int64_t> inFlight) {
  Load most = *std::max_element(inFlight.begin(), inFlight.end()), sum = 0;
  auto add = [&](const StageLoad &load, int64_t times) {
    Load all;
    return !__builtin_mul_overflow(load.perMicrobatch, most, &all) && !__builtin_add_overflow(all, load.once, &all) &&
           !__builtin_mul_overflow(all, Load(times), &all) && !__builtin_add_overflow(sum, all, &sum) && sum <= maxLoad;
  };
  return add(chain.before, 1) && add(chain.behind, 1) &&
         std::all_of(chain.runs.begin(), chain.runs.end(), [&](auto &run) { return add(run.load, run.count); });
}

std::optional<std::vector<int64_t>> stage::splitBalanced(const ChainLoad &chain, llvm::ArrayRef<int64_t> inFlight) {
  return isInRange(chain, inFlight) ? Splitter(chain, inFlight).run() : std::nullopt;
}
