//===- Relations.cpp - what of a job's sizes a proof keeps ----------------===//
#include "Relations.h"
#include "stage/IR/algebra/FormulaPoint.h"
#include "stage/IR/graph/Costs.h"
#include "stage/IR/text/Text.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/raw_ostream.h"
#include <map>
#include <set>

using namespace stage;
using namespace stage::interp;

bool Relation::holds(const SizeBinding &binding) const {
  SizeValue value = evaluate(left, binding);
  if (!value)
    return false;
  if (kind == Kind::Positive)
    return value.value.num > 0 && (!test || test(binding));
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
/// A sum of indices and integer elements, each times a size, and a size.
struct AffineForm {
  std::map<unsigned, Size> coefficients; ///< By index; behind these, by operand.
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
        findLimits(op);
    });
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
    if (relation.left.getConstant() && (!relation.right || relation.right.getConstant()) && !relation.test)
      return;
    std::string tested = relation.test ? relation.text : "";
    if (relation.holds(job) &&
        known.insert({relation.kind, relation.left.getNode(), relation.right.getNode(), tested}).second)
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
    bool isOfPieces = owed.right && !owed.right.getConstant() && llvm::all_of(collectSymbols(owed.right), isAxis);
    if (owed.kind == Obligations::Kind::Divides && !isOfPieces)
      addQuotient(owed.left, owed.right);
    if (owed.kind == Obligations::Kind::AtMost)
      addPositive(owed.right - owed.left, owed.left.str() + " < " + owed.right.str(), measure({owed.left, owed.right}));
    if (owed.kind == Obligations::Kind::Positive && owed.left.getSymbol().empty())
      addPositive(owed.left - 1,
                  owed.reason.compare(0, 8, "require ") == 0 ? "'" + owed.reason + "' with room"
                                                             : owed.left.str() + " > 1",
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
      add({Relation::Kind::Indivisible, left, right, left.str() + " is no multiple of " + right.str(),
           measure({left, right})});
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
    Relation relation{Relation::Kind::Indivisible, elements, parts,
                      elements.str() + " is no multiple of " + parts.str(), measure({elements, parts})};
    relation.isOfPieces = true;
    add(std::move(relation));
  }

  //===--- formulas -------------------------------------------------------===//

  /// Integers lead into dims: `table[ids[b, s], d]`, `routes b, s, j -> x, c by to`.
  void findLimits(const Op &op) {
    const OpDef &def = *op.def;
    if (def.vjpOf)
      return;
    if (def.routing && def.routing->operand < op.getNumOperands())
      limits[op.getOperand(def.routing->operand)] = op.extents[def.routing->target].size;
    auto visit = [&](auto &self, const Formula *f) -> void {
      if (f->kind == Formula::Kind::Element && f->operand < op.getNumOperands())
        for (unsigned k = 0; k < f->children.size(); ++k)
          if (const Formula *subscript = f->children[k];
              subscript->kind == Formula::Kind::Element && subscript->operand < op.getNumOperands())
            limits[op.getOperand(subscript->operand)] = op.extents[def.operands[f->operand].indices[k]].size;
      for (const Formula *child : f->children)
        self(self, child);
    };
    for (const ResultInfo &result : def.results)
      if (result.formula)
        visit(visit, result.formula);
    for (auto &[name, let] : def.lets)
      visit(visit, let);
  }

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
    bool isSided = f->kind == Formula::Kind::Call &&
                   (f->function == Formula::Function::Min || f->function == Formula::Function::Max ||
                    f->function == Formula::Function::Floor);
    if (isSided)
      addCall(op, def, *f);
    if (f->kind == Formula::Kind::Sub)
      addDifference(op, def, *f);
    for (const Formula *child : f->children)
      visit(op, def, child);
  }

  /// Each outcome that occurs somewhere still occurs.
  void addComparison(const Op &op, const OpDef &def, const Formula &f) {
    std::optional<AffineForm> left = makeAffine(op, def, f.children[0]), right = makeAffine(op, def, f.children[1]);
    if (!left || !right)
      return addEnumerated(op, def, f);
    subtract(*left, *right);
    addOutcomes(op, def, f.kind, *left, describe(def, f));
  }

  /// Of the comparison of a form with 0.
  void addOutcomes(const Op &op, const OpDef &def, Formula::Kind kind, const AffineForm &form,
                   const std::string &text) {
    std::optional<Range> range = findRange(op, def, form);
    if (!range)
      return;
    auto &[low, high, measures] = *range;
    // Differences of integers and halves: one that is not negative is more than -1/4.
    auto reaches = [&](Size difference) { return difference + sizes.one() / 4; };
    switch (kind) {
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

  /// Between which values a form lies, and what it depends on.
  struct Range {
    Size low, high;
    Measures measures;
  };
  std::optional<Range> findRange(const Op &op, const OpDef &def, const AffineForm &form) const {
    Range range{form.constant, form.constant, {}};
    for (auto &[number, coefficient] : form.coefficients) {
      bool isIndex = number < def.indices.size();
      Size extent = isIndex ? op.extents[number].size : limits.lookup(getOperand(op, def, number - def.indices.size()));
      SizeValue sign = evaluate(coefficient, job);
      if (!sign)
        return std::nullopt;
      Size &end = sign.value.num > 0 ? range.high : range.low;
      end = end + coefficient * (extent - 1);
      range.measures.emplace_back(isIndex ? def.indices[number].name : def.operands[number - def.indices.size()].name,
                                  extent);
    }
    if (range.measures.empty())
      range.measures = measure({form.constant});
    return range;
  }

  /// `min(window, 600)`: each side that is the smaller one somewhere still is. `floor(s / 1024)`: several values stay
  /// several.
  void addCall(const Op &op, const OpDef &def, const Formula &f) {
    std::vector<AffineForm> sides;
    for (const Formula *child : f.children)
      if (std::optional<AffineForm> form = makeAffine(op, def, child))
        sides.push_back(std::move(*form));
    if (sides.size() != f.children.size())
      return;
    if (f.function == Formula::Function::Floor) {
      if (std::optional<Range> range = findRange(op, def, sides.front()); range && !sides.front().coefficients.empty())
        addPositive(range->high - range->low - 1 + sizes.one() / 4, describe(def, f) + "has several values",
                    range->measures);
      return;
    }
    for (size_t i = 0; i < sides.size(); ++i)
      for (size_t j = i + 1; j < sides.size(); ++j) {
        AffineForm difference = sides[i];
        subtract(difference, sides[j]);
        std::optional<Range> range = findRange(op, def, difference);
        if (!range)
          continue;
        addPositive(range->low * -1,
                    describe(def, f) + "has its side " + std::to_string(i + 1) + " below side " + std::to_string(j + 1),
                    range->measures);
        addPositive(range->high,
                    describe(def, f) + "has its side " + std::to_string(j + 1) + " below side " + std::to_string(i + 1),
                    range->measures);
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

  /// A comparison of other functions of indices, as `floor(sqrt(x)) == 7`: each outcome that occurs at some position
  /// still does.
  void addEnumerated(const Op &op, const OpDef &def, const Formula &f) {
    PointEvaluator evaluator(def, [](Size) { return std::nullopt; });
    if (evaluator.readsData(&f))
      return;
    for (bool outcome : {true, false}) {
      std::optional<std::vector<std::pair<unsigned, int64_t>>> first = findPoint(op, def, f, outcome, job);
      if (!first)
        continue;
      // Sizes that have the first position are tried, and then whether the outcome occurs there at these sizes.
      Size room = sizes.one();
      Measures measures;
      for (auto [index, position] : *first) {
        room = min(room, op.extents[index].size - position);
        measures.emplace_back(def.indices[index].name, op.extents[index].size);
      }
      addSizes(op, def, &f, measures);
      Relation relation{Relation::Kind::Positive, room, Size(),
                        describe(def, f) + (outcome ? "is true somewhere" : "is false somewhere"), std::move(measures)};
      relation.test = [&op, &def, &f, outcome](const SizeBinding &binding) {
        return findPoint(op, def, f, outcome, binding).has_value();
      };
      add(std::move(relation));
    }
  }

  /// Symbols of sizes in a formula.
  void addSizes(const Op &op, const OpDef &def, const Formula *f, Measures &measures) const {
    if (f->kind == Formula::Kind::SizeOf)
      for (auto &measure : this->measure({bindExtents(op, def, f->size)}))
        if (!llvm::is_contained(measures, measure))
          measures.push_back(measure);
    if (f->kind == Formula::Kind::Let)
      addSizes(op, def, def.lets[f->operand].second, measures);
    for (const Formula *child : f->children)
      addSizes(op, def, child, measures);
  }

  /// The first position at which a comparison of indices and sizes has an outcome. Nothing also where there are too
  /// many to look at.
  static std::optional<std::vector<std::pair<unsigned, int64_t>>>
  findPoint(const Op &op, const OpDef &def, const Formula &f, bool outcome, const SizeBinding &binding) {
    PointEvaluator evaluator(def, [&](Size size) -> std::optional<double> {
      SizeValue value = evaluate(bindExtents(op, def, size), binding);
      return value ? std::optional(double(value.value.num) / double(value.value.den)) : std::nullopt;
    });
    constexpr int64_t mostPoints = 200000;
    std::vector<std::pair<unsigned, int64_t>> counts, point;
    int64_t points = 1;
    for (unsigned index : evaluator.getIndices(&f).set_bits()) {
      SizeValue count = isFree(op, def, index) ? evaluateCount(op.extents[index].size, binding)
                                               : SizeValue{SizeError::Negative, "", {}};
      if (!count || count.value.num < 1 || count.value.num > mostPoints / points)
        return std::nullopt;
      counts.emplace_back(index, int64_t(count.value.num));
      points *= int64_t(count.value.num);
    }
    point = counts;
    for (int64_t number = 0; number < points; ++number) {
      int64_t rest = number;
      for (size_t i = counts.size(); i-- > 0; rest /= counts[i].second)
        point[i].second = rest % counts[i].second;
      evaluator.setPoint(point);
      if (PointValue value = evaluator.evaluate(&f); value.isNumber() && (value.number != 0) == outcome)
        return point;
    }
    return std::nullopt;
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

  /// What stands in the place of an operand of `def`, of which the op may be the backward: null if that does not have
  /// it.
  static const Value *getOperand(const Op &op, const OpDef &def, unsigned operand) {
    if (op.def->vjpOf) {
      llvm::SmallVector<unsigned, 4> saved, results;
      listSaved(def, saved, results);
      auto it = llvm::find(saved, operand);
      if (it == saved.end())
        return nullptr;
      operand = it - saved.begin();
    }
    return operand < op.getNumOperands() ? op.getOperand(operand) : nullptr;
  }

  static void subtract(AffineForm &from, const AffineForm &form) {
    for (auto &[index, coefficient] : form.coefficients) {
      Size &own = from.coefficients[index];
      own = own ? own - coefficient : coefficient * -1;
      if (own.isConstant(0))
        from.coefficients.erase(index);
    }
    from.constant = from.constant - form.constant;
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
    case Formula::Kind::Element: // an integer that leads into a dim is one of its positions
      if (const Value *value = getOperand(op, def, f->operand); !value || !limits.lookup(value))
        return std::nullopt;
      return AffineForm{{{unsigned(def.indices.size()) + f->operand, sizes.one()}}, sizes.zero()};
    case Formula::Kind::Let:
      return makeAffine(op, def, def.lets[f->operand].second);
    case Formula::Kind::Negate: {
      AffineForm zero{{}, sizes.zero()};
      std::optional<AffineForm> form = makeAffine(op, def, f->children[0]);
      if (!form)
        return std::nullopt;
      subtract(zero, *form);
      return zero;
    }
    case Formula::Kind::Add:
    case Formula::Kind::Sub: {
      std::optional<AffineForm> left = makeAffine(op, def, f->children[0]), right = makeAffine(op, def, f->children[1]);
      if (!left || !right)
        return std::nullopt;
      AffineForm negated{{}, sizes.zero()};
      if (f->kind == Formula::Kind::Add)
        subtract(negated, *right);
      subtract(*left, f->kind == Formula::Kind::Add ? negated : *right);
      return left;
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
  std::set<std::tuple<Relation::Kind, const SizeNode *, const SizeNode *, std::string>> known;
  std::set<const SizeNode *> seen;
  llvm::DenseMap<const Value *, Size> limits; ///< Of integers: the dim that they lead into.
};
} // namespace

std::vector<Relation> stage::interp::findRelations(Graph &graph, const SizeBinding &job) {
  return RelationFinder(graph, job).run();
}
