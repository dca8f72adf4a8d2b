//===- Relations.cpp - what of a job's sizes a proof keeps ----------------===//
#include "Relations.h"
#include "stage/IR/Costs.h"
#include "stage/IR/FormulaPoint.h"
#include "stage/IR/Text.h"
#include "llvm/Support/raw_ostream.h"
#include <map>
#include <set>

using namespace stage;

bool Relation::holds(const SizeBinding &binding) const {
  SizeValue value = evaluate(left, binding);
  if (!value)
    return false;
  if (kind == Kind::Positive)
    return value.value.num > 0;
  SizeValue divisor = evaluate(right, binding);
  std::optional<Rational> quotient = divisor ? value.value.div(divisor.value) : std::nullopt;
  return quotient && !quotient->isInteger();
}

static std::string getText(Size size, const SizeBinding &binding) {
  SizeValue value = evaluate(size, binding);
  return value ? value.value.str() : "?";
}

std::string Relation::describe(const SizeBinding &binding, const SizeBinding &job) const {
  std::string result = text;
  bool isFirst = true;
  for (auto &[name, size] : measures) {
    std::string now = getText(size, binding), before = getText(size, job);
    if (now == before)
      continue;
    result += (isFirst ? ": " : ", ") + name + " " + now + " of " + before;
    isFirst = false;
  }
  return result;
}

namespace {
/// A sum of indices, each times a size, and a size.
struct AffineForm {
  std::map<unsigned, Size> coefficients; ///< By index.
  Size constant;
};

class RelationFinder {
public:
  RelationFinder(Graph &graph, const SizeBinding &job) : graph(graph), sizes(graph.sizes), job(job) {}

  std::vector<Relation> run() {
    for (const Obligations::Obligation &owed : graph.obligations.all())
      addRequirement(owed);
    for (const Obligations::Obligation &decision : graph.obligations.getDecisions())
      addPositive(decision.left, decision.reason, measure({decision.left}));
    graph.walk([&](Op &op) {
      if (op.def)
        visitFormulas(op);
    });
    graph.walk([&](Op &op) {
      for (const Extent &extent : op.extents)
        addCalls(extent.size);
      for (auto &result : op.getResults())
        for (const Extent &extent : result->type.shape)
          addCalls(extent.size);
    });
    graph.walk([&](Op &op) {
      for (unsigned i = 0; i < op.extents.size(); ++i)
        if (i < op.indexAxes.size())
          addPieces(op.extents[i], op.indexAxes[i]);
      for (auto &result : op.getResults()) {
        for (unsigned d = 0; d < result->type.getNumDims(); ++d)
          if (d < result->sharding.dims.size())
            addPieces(result->type.shape[d], result->sharding.dims[d]);
        addFlat(*result);
      }
    });
    return std::move(relations);
  }

private:
  using Measures = std::vector<std::pair<std::string, Size>>;

  Measures measure(std::initializer_list<Size> of) const {
    std::set<std::string> names;
    for (Size size : of)
      if (size)
        for (const std::string &name : collectSymbols(size))
          names.insert(name);
    Measures measures;
    for (const std::string &name : names)
      measures.emplace_back(name, sizes.symbol(name));
    return measures;
  }

  void add(Relation relation) {
    if (relation.left.getConstant() && (!relation.right || relation.right.getConstant()))
      return;
    if (relation.holds(job) && known.insert({relation.kind, relation.left.getNode(), relation.right.getNode()}).second)
      relations.push_back(std::move(relation));
  }
  void addPositive(Size size, std::string text, Measures measures) {
    add({Relation::Kind::Positive, size, Size(), std::move(text), std::move(measures)});
  }

  //===--- requirements ---------------------------------------------------===//

  /// One that holds with room keeps room. That a dim has a position says nothing more than a size does.
  void addRequirement(const Obligations::Obligation &owed) {
    for (Size size : {owed.left, owed.right})
      if (size)
        for (const SizeCall &call : collectCalls(size))
          if (call.kind != SizeCall::Kind::Min && call.kind != SizeCall::Kind::Max) // of the margins of conditions
            addQuotient(call.args[0], call.args[1]);
    auto isAxis = [&](const std::string &name) { return graph.mesh.find(name).has_value(); };
    if (owed.kind == Obligations::Kind::Divides && !llvm::all_of(collectSymbols(owed.right), isAxis)) // those are pieces
      addQuotient(owed.left, owed.right);
    if (owed.kind == Obligations::Kind::AtMost)
      addPositive(owed.right - owed.left, owed.left.str() + " < " + owed.right.str(), measure({owed.left, owed.right}));
    if (owed.kind == Obligations::Kind::Positive && owed.left.getSymbol().empty())
      addPositive(owed.left - 1, owed.reason.compare(0, 8, "require ") == 0 ? "'" + owed.reason + "' with room" : owed.left.str() + " > 1",
                  measure({owed.left}));
  }

  //===--- sizes ----------------------------------------------------------===//

  /// Several parts stay several: more than one chunk of a sequence.
  void addQuotient(Size left, Size right) {
    addPositive(left - right, right.str() + " < " + left.str(), measure({left, right}));
  }

  void addCalls(Size size) {
    if (!size || !seen.insert(size.getNode()).second)
      return;
    for (const SizeCall &call : collectCalls(size)) {
      if (call.kind == SizeCall::Kind::Min || call.kind == SizeCall::Kind::Max) {
        for (size_t a = 0; a < call.args.size(); ++a)
          for (size_t b = 0; b < call.args.size(); ++b)
            if (a != b)
              addPositive(call.args[b] - call.args[a], call.args[a].str() + " < " + call.args[b].str(),
                          measure({call.args[a], call.args[b]}));
        continue;
      }
      Size left = call.args[0], right = call.args[1];
      addQuotient(left, right);
      add({Relation::Kind::Indivisible, left, right, left.str() + " is no multiple of " + right.str(), measure({left, right})});
    }
  }

  /// Several positions on a rank stay several; of a mirrored dim in each of its two blocks.
  void addPieces(const Extent &extent, llvm::ArrayRef<PlacedAxis> axes) {
    if (!extent.size || axes.empty() || graph.mesh.findUnevenSlots(extent.dim))
      return;
    Size local = extent.size;
    for (const PlacedAxis &axis : axes) {
      if (axis.isListed())
        return;
      local = local / sizes.symbol(graph.mesh[axis].name) / (axis.isMirrored() ? 2 : 1);
    }
    Relation relation{Relation::Kind::Positive, local - 1, Size(), local.str() + " > 1", measure({local})};
    relation.isOfPieces = true;
    add(std::move(relation));
  }

  /// Flat storage that is padded stays padded.
  void addFlat(const Value &value) {
    if (value.sharding.flat.empty())
      return;
    Sharding whole = value.sharding;
    whole.flat.clear();
    Size elements = getLocalElements(sizes, graph.mesh, value.type, whole), parts = sizes.one();
    for (const PlacedAxis &axis : value.sharding.flat)
      parts = parts * sizes.symbol(graph.mesh[axis].name);
    Relation relation{Relation::Kind::Indivisible, elements, parts, elements.str() + " is no multiple of " + parts.str(), measure({elements, parts})};
    relation.isOfPieces = true;
    add(std::move(relation));
  }

  //===--- formulas -------------------------------------------------------===//

  void visitFormulas(const Op &op) {
    const OpDef &def = op.def->vjpOf ? *op.def->vjpOf : *op.def;
    for (const ResultInfo &result : def.results)
      if (result.formula)
        visit(op, def, result.formula);
    for (auto &[name, let] : def.lets)
      visit(op, def, let);
  }

  void visit(const Op &op, const OpDef &def, const Formula *f) {
    if (f->kind == Formula::Kind::Less || f->kind == Formula::Kind::LessEqual || f->kind == Formula::Kind::Equal)
      addComparison(op, def, *f);
    if (f->kind == Formula::Kind::Sub)
      addDifference(op, def, *f);
    for (const Formula *child : f->children)
      visit(op, def, child);
  }

  /// Each outcome that occurs somewhere still occurs.
  void addComparison(const Op &op, const OpDef &def, const Formula &f) {
    std::optional<AffineForm> left = makeAffine(op, def, f.children[0]), right = makeAffine(op, def, f.children[1]);
    if (!left || !right || !subtract(*left, *right))
      return addEnumerated(op, def, f);
    Size low = left->constant, high = left->constant;
    Measures measures;
    for (auto &[index, coefficient] : left->coefficients) {
      Size last = op.extents[index].size - 1;
      SizeValue sign = evaluate(coefficient, job);
      if (!sign)
        return;
      (sign.value.num > 0 ? high : low) = (sign.value.num > 0 ? high : low) + coefficient * last;
      measures.emplace_back(def.indices[index].name, op.extents[index].size);
    }
    if (measures.empty())
      measures = measure({low});
    std::string text = describe(def, f);
    // Differences of integers and halves: one that is not negative is more than -1/4.
    auto reaches = [&](Size difference) { return difference + sizes.one() / 4; };
    switch (f.kind) {
    case Formula::Kind::Less:
      addPositive(low * -1, text + "is true somewhere", measures);
      addPositive(reaches(high), text + "is false somewhere", measures);
      break;
    case Formula::Kind::LessEqual:
      addPositive(reaches(low * -1), text + "is true somewhere", measures);
      addPositive(high, text + "is false somewhere", measures);
      break;
    default:
      addPositive(min(reaches(high), reaches(low * -1)), text + "is true somewhere", measures);
      addPositive(high - low, text + "is false somewhere", measures);
    }
  }

  /// "'s - t < 4' in 'attention' ".
  static std::string describe(const OpDef &def, const Formula &f) {
    std::string text = "'";
    llvm::raw_string_ostream os(text);
    print(os, def, f);
    os << "' in '" << def.name << "' ";
    return os.str();
  }

  /// A comparison of other functions of indices, as `floor(sqrt(x)) == 7`: each outcome keeps the first position where it occurs.
  void addEnumerated(const Op &op, const OpDef &def, const Formula &f) {
    PointEvaluator evaluator(def, [&](Size size) -> std::optional<double> {
      SizeValue value = evaluate(bindExtents(op, def, size), job);
      return value ? std::optional(double(value.value.num) / double(value.value.den)) : std::nullopt;
    });
    if (evaluator.readsData(&f))
      return;
    constexpr int64_t mostPoints = 200000;
    std::vector<std::pair<unsigned, int64_t>> counts, point;
    int64_t points = 1;
    for (unsigned index : evaluator.getIndices(&f).set_bits()) {
      SizeValue count = isFree(op, def, index) ? evaluateCount(op.extents[index].size, job) : SizeValue{SizeError::Negative, "", {}};
      if (!count || count.value.num < 1 || count.value.num > mostPoints / points)
        return;
      counts.emplace_back(index, int64_t(count.value.num));
      points *= int64_t(count.value.num);
    }
    std::map<bool, std::vector<std::pair<unsigned, int64_t>>> first; // by outcome
    point = counts;
    for (int64_t number = 0; number < points && first.size() < 2; ++number) {
      int64_t rest = number;
      for (size_t i = counts.size(); i-- > 0; rest /= counts[i].second)
        point[i].second = rest % counts[i].second;
      evaluator.setPoint(point);
      if (PointValue outcome = evaluator.evaluate(&f); outcome.isNumber())
        first.try_emplace(outcome.number != 0, point);
    }
    for (auto &[outcome, where] : first) {
      Size room = sizes.one();
      Measures measures;
      for (auto [index, position] : where) {
        room = min(room, op.extents[index].size - position);
        measures.emplace_back(def.indices[index].name, op.extents[index].size);
      }
      addPositive(room, describe(def, f) + (outcome ? "is true somewhere" : "is false somewhere"), measures);
    }
  }

  /// An index whose positions are those of a dim.
  static bool isFree(const Op &op, const OpDef &def, unsigned index) {
    return index < op.extents.size() && op.extents[index].size && !def.indices[index].isCompound() &&
           !(def.routing && def.routing->slot == index);
  }

  static Size bindExtents(const Op &op, const OpDef &def, Size size) {
    return substitute(size, [&](llvm::StringRef symbol) {
      auto index = def.findIndex(symbol);
      return index ? op.extents[*index].size : Size();
    });
  }

  /// `size(f) - 16`: a difference of sizes keeps its sign, as under a root.
  void addDifference(const Op &op, const OpDef &def, const Formula &f) {
    std::optional<AffineForm> form = makeAffine(op, def, &f);
    if (!form || !form->coefficients.empty())
      return;
    for (int64_t sign : {1, -1})
      addPositive(form->constant * sign, (form->constant * sign).str() + " > 0", measure({form->constant}));
  }

  static bool subtract(AffineForm &from, const AffineForm &form) {
    for (auto &[index, coefficient] : form.coefficients) {
      Size &own = from.coefficients[index];
      own = own ? own - coefficient : coefficient * -1;
      if (own.isConstant(0))
        from.coefficients.erase(index);
    }
    from.constant = from.constant - form.constant;
    return true;
  }

  std::optional<AffineForm> makeAffine(const Op &op, const OpDef &def, const Formula *f) const {
    switch (f->kind) {
    case Formula::Kind::Number: {
      constexpr double most = 1e15, parts = 1024; // a power of two: exact
      double scaled = f->number * parts;
      if (!(std::abs(f->number) < most) || scaled != double(int64_t(scaled)))
        return std::nullopt;
      return AffineForm{{}, sizes.constant(int64_t(scaled)) / int64_t(parts)};
    }
    case Formula::Kind::SizeOf:
      return AffineForm{{}, bindExtents(op, def, f->size)};
    case Formula::Kind::Index:
      if (!isFree(op, def, f->index))
        return std::nullopt;
      return AffineForm{{{f->index, sizes.one()}}, sizes.zero()};
    case Formula::Kind::Let:
      return makeAffine(op, def, def.lets[f->operand].second);
    case Formula::Kind::Negate: {
      AffineForm zero{{}, sizes.zero()};
      std::optional<AffineForm> form = makeAffine(op, def, f->children[0]);
      return form && subtract(zero, *form) ? std::optional(zero) : std::nullopt;
    }
    case Formula::Kind::Add:
    case Formula::Kind::Sub: {
      std::optional<AffineForm> left = makeAffine(op, def, f->children[0]), right = makeAffine(op, def, f->children[1]);
      if (!left || !right)
        return std::nullopt;
      AffineForm negated{{}, sizes.zero()};
      if (f->kind == Formula::Kind::Add)
        subtract(negated, *right);
      return subtract(*left, f->kind == Formula::Kind::Add ? negated : *right) ? left : std::nullopt;
    }
    case Formula::Kind::Mul:
    case Formula::Kind::Div: {
      std::optional<AffineForm> left = makeAffine(op, def, f->children[0]), right = makeAffine(op, def, f->children[1]);
      bool isProduct = f->kind == Formula::Kind::Mul;
      if (left && right && isProduct && left->coefficients.empty())
        std::swap(left, right);
      if (!left || !right || !right->coefficients.empty() || right->constant.isConstant(0))
        return std::nullopt;
      Size factor = isProduct ? right->constant : sizes.one() / right->constant;
      left->constant = left->constant * factor;
      for (auto &entry : left->coefficients)
        entry.second = entry.second * factor;
      return left;
    }
    default:
      return std::nullopt;
    }
  }

  Graph &graph;
  SizeContext &sizes;
  const SizeBinding &job;
  std::vector<Relation> relations;
  std::set<std::tuple<Relation::Kind, const SizeNode *, const SizeNode *>> known;
  std::set<const SizeNode *> seen;
};
} // namespace

std::vector<Relation> stage::findRelations(Graph &graph, const SizeBinding &job) { return RelationFinder(graph, job).run(); }
