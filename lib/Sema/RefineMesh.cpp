//===- RefineMesh.cpp - two readings of the same ranks --------------------===//
//
// Problem: experts are spread over ranks in another way than the rest of the model.
//
//   mesh (dp, tp) = (edp, ep);       // 4 x 4 ranks, read again as 2 x 8
//
// Below the strategy an axis that stands in one place must say at once which ranks
// another one takes. So there are only *atoms* there, of which both readings are made:
//
//   rank     8 4 2 1 (distance of neighbours)
//   dp  tp   dp.0 dp.1 | tp.0 tp.1 ...      dp = (dp.0, dp.1)
//   edp ep   edp       | ep                 ep = (dp.1, tp)
//
// Algorithm: an axis is the ranks between two distances, that of its neighbours and
// that times its size. The distances at which axes of either reading begin cut the
// ranks into atoms; neighbouring cuts must divide each other. An atom that is an axis
// has its name, that of the first reading before the second's; another one is a piece
// of an axis of the first reading, `dp.0` the outermost.
//
// Limits: an axis of size 1 of the second reading stands innermost; it has no ranks.
//
//===----------------------------------------------------------------------===//
#include "BindStrategy.h"
#include "stage/Sema/Diagnostics.h"
#include <map>

using namespace stage;
using namespace stage::sema;

namespace {
class MeshRefiner {
public:
  MeshRefiner(BoundStrategy &strategy, ArrayRef<BoundAxis> second, SMRange range, SizeContext &sizes,
              DiagnosticEngine &diags)
      : strategy(strategy), first(strategy.readings), second(second), range(range), sizes(sizes), diags(diags) {}

  bool run() {
    int64_t ranks[] = {countRanks(first), countRanks(second)};
    if (ranks[0] != ranks[1]) {
      diags.report(range.Start, diag::MeshReadingsDiffer).range(range) << ranks[0] << ranks[1];
      return false;
    }
    cut(first);
    cut(second);
    if (!checkCuts() || !checkSharedNames())
      return false;
    for (const Place &place : listPlaces(first))
      place.axis->size == 1 ? addAtom(place.axis->name, 1, *place.axis) : addAtoms(place);
    for (const Place &place : listPlaces(second))
      if (place.axis->size == 1 && !strategy.findAxis(place.axis->name.name))
        strategy.mesh.push_back({place.axis->name, 1,
                                 first.back().networkDim ? std::optional<int64_t>(0) : std::nullopt,
                                 place.axis->origin});
    for (ArrayRef<BoundAxis> reading : {ArrayRef<BoundAxis>(first), second})
      for (const Place &place : listPlaces(reading))
        addAlias(place);
    for (const BoundAxis &axis : second)
      if (!find(first, axis.name.name))
        strategy.readings.push_back(axis);
    return true;
  }

private:
  /// The ranks between two distances.
  struct Place {
    const BoundAxis *axis;
    int64_t begin, end;
  };

  static int64_t countRanks(ArrayRef<BoundAxis> reading) {
    int64_t ranks = 1;
    for (const BoundAxis &axis : reading)
      ranks *= axis.size;
    return ranks;
  }

  static const BoundAxis *find(ArrayRef<BoundAxis> reading, StringRef name) {
    auto it = llvm::find_if(reading, [&](const BoundAxis &axis) { return axis.name.name == name; });
    return it == reading.end() ? nullptr : it;
  }

  static std::vector<Place> listPlaces(ArrayRef<BoundAxis> reading) {
    std::vector<Place> places;
    int64_t end = countRanks(reading);
    for (const BoundAxis &axis : reading) {
      places.push_back({&axis, end / axis.size, end});
      end /= axis.size;
    }
    return places;
  }

  void cut(ArrayRef<BoundAxis> reading) {
    for (const Place &place : listPlaces(reading)) {
      cuts.try_emplace(place.begin, nullptr);
      if (place.axis->size > 1)
        cuts[place.end] = place.axis;
    }
  }

  /// `1, 2, 4`: sizes with which an axis of the second reading ends where the first one may be cut.
  std::string listSizesThatFit(const BoundAxis &axis, int64_t inner) const {
    constexpr int64_t mostTried = 1 << 12, mostListed = 8;
    std::string text;
    int64_t ranks = countRanks(first), listed = 0;
    for (int64_t size = 1; size <= mostTried && size * inner <= ranks && listed != mostListed; ++size) {
      int64_t end = size * inner;
      auto fits = [&](const Place &place) { return place.end % end == 0 || end % place.end == 0; };
      if (ranks % end || !llvm::all_of(listPlaces(first), fits))
        continue;
      text += (text.empty() ? "" : ", ") + std::to_string(size);
      ++listed;
    }
    return text;
  }

  bool checkCuts() {
    for (auto it = cuts.begin(); std::next(it) != cuts.end(); ++it) {
      auto next = std::next(it);
      if (next->first % it->first == 0)
        continue;
      const BoundAxis &a = *it->second, &b = *next->second;
      DiagnosticBuilder error = diags.report(range.Start, diag::MeshReadingsCross).range(range)
                                << a.name.name << a.size << b.name.name << b.size << it->first << next->first;
      bool isFirst = find(second, a.name.name) == &a;
      const BoundAxis &changed = isFirst ? a : b;
      if (std::string sizes = listSizesThatFit(changed, (isFirst ? it : next)->first / changed.size); !sizes.empty())
        error.note(SMLoc(), diag::NameInstead) << "sizes of '" + changed.name.name.str() + "' that fit are " + sizes;
      return false;
    }
    return true;
  }

  /// One name is one set of ranks.
  bool checkSharedNames() {
    for (const Place &place : listPlaces(second))
      for (const Place &other : listPlaces(first))
        if (place.axis->name.name == other.axis->name.name && place.axis->size > 1 &&
            (place.begin != other.begin || place.end != other.end)) {
          DiagnosticBuilder error =
              diags.report(place.axis->name.loc(), diag::MeshNameMoves).range(place.axis->name.range)
              << place.axis->name.name << other.begin << place.begin;
          error.note(other.axis->name.loc(), diag::PreviousHere) << place.axis->name.name;
          return false;
        }
    return true;
  }

  void addAtom(ast::Ident name, int64_t size, const BoundAxis &of) {
    strategy.mesh.push_back({name, size, of.networkDim, of.origin});
  }

  /// The pieces into which an axis of the first reading is cut, outermost first.
  void addAtoms(const Place &place) {
    std::vector<int64_t> distances;
    for (auto it = cuts.find(place.begin); it->first <= place.end; ++it) {
      distances.push_back(it->first);
      if (std::next(it) == cuts.end())
        break;
    }
    for (size_t piece = distances.size() - 1; piece > 0; --piece) {
      ast::Ident name = place.axis->name;
      int64_t begin = distances[piece - 1], end = distances[piece];
      if (distances.size() > 2)
        name = namePiece(place, begin, end, distances.size() - 1 - piece);
      atoms[begin] = strategy.mesh.size();
      addAtom(name, end / begin, *place.axis);
    }
  }

  ast::Ident namePiece(const Place &place, int64_t begin, int64_t end, size_t number) {
    for (const Place &other : listPlaces(second))
      if (other.begin == begin && other.end == end && !find(first, other.axis->name.name))
        return other.axis->name;
    // The context keeps the text.
    std::string text = (place.axis->name.name + "." + llvm::Twine(number)).str();
    return {sizes.symbol(text).getSymbol(), place.axis->name.range};
  }

  /// Unless it is an atom of its name.
  void addAlias(const Place &place) {
    if (place.axis->size == 1 || strategy.findAxis(place.axis->name.name) ||
        llvm::any_of(strategy.aliases, [&](const BoundAlias &a) { return a.name.name == place.axis->name.name; }))
      return;
    BoundAlias alias{place.axis->name, {}};
    for (auto it = atoms.lower_bound(place.begin); it != atoms.end() && it->first < place.end; ++it)
      alias.axes.insert(alias.axes.begin(), strategy.mesh[it->second].name.name);
    strategy.aliases.push_back(std::move(alias));
  }

  BoundStrategy &strategy;
  const std::vector<BoundAxis> first; ///< A copy: names of the second reading are added to the strategy's.
  ArrayRef<BoundAxis> second;
  SMRange range;
  SizeContext &sizes;
  DiagnosticEngine &diags;
  std::map<int64_t, const BoundAxis *> cuts; ///< Distance, and an axis that begins or ends there.
  std::map<int64_t, size_t> atoms;           ///< Distance of neighbours to atom.
};
} // namespace

bool stage::sema::refineMesh(BoundStrategy &strategy, ArrayRef<BoundAxis> second, SMRange range, SizeContext &sizes,
                             DiagnosticEngine &diags) {
  return MeshRefiner(strategy, second, range, sizes, diags).run();
}
