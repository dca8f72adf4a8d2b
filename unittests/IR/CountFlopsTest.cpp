//===- CountFlopsTest.cpp - FLOPs of formulas against counted runs --------===//
//
// The interpreter here runs a formula element by element, keeps each number that it
// computed for the positions that it saw being read, and counts what it executes. Its
// gradients walk back over these numbers and count what meets in one. It knows neither
// of index sets nor of where sums come from: what it reads and what meets it observes.
//
//===----------------------------------------------------------------------===//
#include "ParsedGraph.h"
#include <cmath>
#include <map>
#include <random>
#include <set>

using namespace stage;
using Kind = Formula::Kind;

namespace {
struct Counts {
  int64_t contraction = 0, other = 0;
  bool operator==(const Counts &o) const { return contraction == o.contraction && other == o.other; }
};
void PrintTo(const Counts &counts, std::ostream *os) {
  *os << counts.contraction << " contraction, " << counts.other << " other";
}

class CountingRun {
public:
  CountingRun(const OpDef &def, std::vector<int64_t> sizes)
      : def(def), sizes(std::move(sizes)), at(def.indices.size()) {
    for (const ResultInfo &result : def.results)
      forEach(result.indices, [&] { roots.push_back({&result, eval(result.formula)}); });
    // Classes follow from what was observed of the values, so that they are told afterwards.
    std::set<const Formula *> sums;
    for (const Number &number : numbers)
      if (number.formula->kind == Kind::Reduce && number.formula->reduce == ReduceKind::Sum)
        sums.insert(number.formula);
    for (const Formula *sum : sums)
      expandSum(sum->children[0], {sum});
    for (const Number &number : numbers)
      (contracting.count(number.formula) ? forward.contraction : forward.other) += number.executed;
  }

  Counts forward;

  Counts countGradients(const std::set<unsigned> &wanted) {
    std::map<Edge, std::map<Target, int64_t>> edges;
    std::vector<bool> reached(numbers.size());
    auto contribute = [&](Edge edge, const Formula *child, size_t number) {
      if (llvm::none_of(numbers[number].smooth, [&](unsigned operand) { return wanted.count(operand); }))
        return;
      Target target{
          child->kind == Kind::Let ? "let" : "node", child->kind == Kind::Let ? child->operand : 0, {int64_t(number)}};
      if (child->kind == Kind::Element)
        target = {"operand", child->operand, numbers[number].place};
      reached[number] = reached[number] || child->kind != Kind::Element;
      ++edges[edge][target];
    };
    for (auto &[result, number] : roots)
      contribute({nullptr, unsigned(result - def.results.data())}, result->formula, number);
    for (size_t i = numbers.size(); i-- > 0;) {
      if (!reached[i] || !isSmooth(numbers[i].formula))
        continue;
      for (auto &[position, child] : numbers[i].children)
        if (numbers[i].formula->kind != Kind::Select || position != 0)
          contribute(getEdge(numbers[i].formula, position), getChild(numbers[i].formula, position), child);
    }
    Counts counts;
    std::set<std::pair<std::string, unsigned>> written;
    for (auto &[edge, targets] : edges) {
      int64_t times = 0, most = 0;
      for (auto &[target, count] : targets) {
        times += count;
        most = std::max(most, count);
      }
      bool meets = most > 1;
      bool isMultiplyAdd = isStep(edge) && edge.first->kind == Kind::Mul && contracting.count(edge.first) && meets;
      int64_t &counted = isMultiplyAdd ? counts.contraction : counts.other;
      counted += times * getSlope(edge);
      const Target &any = targets.begin()->first;
      std::pair<std::string, unsigned> group(std::get<0>(any), std::get<1>(any));
      if (meets)
        counted += times;
      else if (group.first != "node" && !written.insert(group).second)
        counts.other += times;
    }
    return counts;
  }

private:
  /// Whose gradient flows: a node and the number of its child; or a result; or a let, by what it stands for.
  using Edge = std::pair<const Formula *, unsigned>;
  static constexpr unsigned fromLet = ~0u;
  Edge getEdge(const Formula *f, unsigned position) const {
    return f->kind == Kind::Let ? Edge(def.lets[f->operand].second, fromLet) : Edge(f, position);
  }
  static bool isStep(Edge edge) { return edge.first && edge.second != fromLet; }
  using Target = std::tuple<std::string, unsigned, std::vector<int64_t>>;

  /// One number that was computed.
  struct Number {
    const Formula *formula;
    double value = 0;
    int64_t executed = 0;
    bool isConstant = true;
    std::set<unsigned> reads, operands, smooth; ///< Indices; operands by value; and with a derivative.
    std::vector<std::pair<unsigned, size_t>> children;
    std::vector<int64_t> place; ///< Of an element.
  };

  template <typename F> void forEach(llvm::ArrayRef<unsigned> indices, F f) {
    if (indices.empty())
      return f();
    int64_t outer = at[indices.front()];
    for (at[indices.front()] = 0; at[indices.front()] < sizes[indices.front()]; ++at[indices.front()])
      forEach(indices.drop_front(), f);
    at[indices.front()] = outer;
  }

  const Formula *getChild(const Formula *f, unsigned position) const {
    return f->kind == Kind::Let ? def.lets[f->operand].second : f->children[position];
  }

  static bool isSmooth(const Formula *f) {
    static const std::set<Kind> steps = {Kind::Less, Kind::LessEqual, Kind::Equal, Kind::And, Kind::Or, Kind::Not};
    return !steps.count(f->kind) && !(f->kind == Kind::Call && f->function == Formula::Function::Floor);
  }

  size_t eval(const Formula *f) {
    // One let is one number wherever it stands.
    const void *identity = f->kind == Kind::Let ? static_cast<const void *>(&def.lets[f->operand]) : f;
    auto key = [&](const std::set<unsigned> &reads) {
      std::vector<int64_t> positions;
      for (unsigned index : reads)
        positions.push_back(at[index]);
      return std::tuple(identity, isAddress > 0, positions);
    };
    auto seen = readsOf.find(identity);
    if (seen != readsOf.end())
      if (auto known = memo.find(key(seen->second)); known != memo.end())
        return known->second;
    Number n = compute(f);
    if (n.isConstant || isAddress)
      n.executed = 0;
    readsOf[identity] = n.reads;
    numbers.push_back(std::move(n));
    return memo[key(numbers.back().reads)] = numbers.size() - 1;
  }

  Number compute(const Formula *f) {
    Number n;
    n.formula = f;
    std::vector<double> values;
    auto visit = [&](unsigned position) {
      size_t child = eval(getChild(f, position));
      const Number &c = numbers[child];
      n.isConstant &= c.isConstant;
      n.reads.insert(c.reads.begin(), c.reads.end());
      values.push_back(c.value);
      if (f->kind == Kind::Element || (f->kind == Kind::Select && position == 0))
        return;
      n.operands.insert(c.operands.begin(), c.operands.end());
      if (isSmooth(f))
        n.smooth.insert(c.smooth.begin(), c.smooth.end());
      n.children.push_back({position, child});
    };
    if (f->kind == Kind::Let)
      visit(0);
    else if (f->kind == Kind::Reduce)
      forEach(f->indices, [&] { visit(0), ++n.executed; });
    else {
      isAddress += f->kind == Kind::Element;
      for (unsigned i = 0; i < f->children.size(); ++i)
        visit(i);
      isAddress -= f->kind == Kind::Element;
    }
    auto done = [&](double value, int64_t executed) {
      n.value = value;
      n.executed = executed;
    };
    switch (f->kind) {
    case Kind::Number:
      n.value = f->number;
      break;
    case Kind::SizeOf:
      n.value = 3;
      break;
    case Kind::Index:
      n.value = at[f->index];
      n.reads = {f->index};
      n.isConstant = false;
      break;
    case Kind::Element:
      n.place.assign(values.begin(), values.end());
      n.value = std::sin(1.0 + f->operand + llvm::hash_combine_range(n.place.begin(), n.place.end()) % 97);
      n.operands.insert(f->operand);
      n.smooth.insert(f->operand);
      n.isConstant = false;
      break;
    case Kind::Let:
      n.value = values[0];
      break;
    case Kind::Reduce:
      for (double value : values)
        n.value = f->reduce == ReduceKind::Sum ? n.value + value : std::max(n.value, value);
      for (unsigned index : f->indices)
        n.reads.erase(index);
      break;
    case Kind::Call:
      done(std::tanh(values[0]), std::max<int64_t>(1, int64_t(values.size()) - 1));
      break;
    case Kind::Negate:
      done(-values[0], 1);
      break;
    case Kind::Add:
      done(values[0] + values[1], isSum(f->children[0]) && isSum(f->children[1]) ? 0 : 1);
      break;
    case Kind::Sub:
      done(values[0] - values[1], 1);
      break;
    case Kind::Mul:
      done(values[0] * values[1], 1);
      break;
    case Kind::Div:
      done(values[0] / values[1], 1);
      break;
    case Kind::Less:
    case Kind::LessEqual:
    case Kind::Equal:
      done(values[0] < values[1], 1);
      break;
    case Kind::Select:
      done(values[0] != 0 ? values[1] : values[2], 0);
      break;
    default:
      done(values[0] != 0, 0);
      break;
    }
    return n;
  }

  /// What a loop adds up; another loop may go on with it.
  static bool isSum(const Formula *f) {
    if (f->kind == Kind::Add)
      return isSum(f->children[0]) && isSum(f->children[1]);
    return f->kind == Kind::Reduce && f->reduce == ReduceKind::Sum && !f->isMean;
  }

  //===--- classes --------------------------------------------------------===//

  const Number &getAny(const Formula *f) const {
    return *llvm::find_if(numbers, [&](const Number &n) {
      return n.formula == f ||
             (f->kind == Kind::Let && n.formula->kind == Kind::Let && n.formula->operand == f->operand);
    });
  }

  /// Follows each addend of a sum; `way` are the additions on the way to it.
  void expandSum(const Formula *f, std::vector<const Formula *> way) {
    const Formula *inner = skipScale(f);
    if (inner != f)
      return expandSum(inner, way);
    if (f->kind == Kind::Let)
      return expandSum(def.lets[f->operand].second, way);
    if (f->kind == Kind::Add || f->kind == Kind::Sub || (f->kind == Kind::Reduce && f->reduce == ReduceKind::Sum)) {
      way.push_back(f);
      for (const Formula *child : f->children)
        expandSum(child, way);
      return;
    }
    std::vector<const Formula *> factors, products;
    listFactors(f, factors, products);
    auto hasOwn = [&](const Formula *a, const Formula *b) {
      const auto &mine = getAny(a).operands, &its = getAny(b).operands;
      return !std::includes(its.begin(), its.end(), mine.begin(), mine.end());
    };
    for (const Formula *a : factors)
      for (const Formula *b : factors)
        if (hasOwn(a, b) && hasOwn(b, a)) {
          contracting.insert(way.begin(), way.end());
          for (const Formula *product : products)
            if (!getAny(product->children[0]).operands.empty() && !getAny(product->children[1]).operands.empty())
              contracting.insert(product);
        }
  }

  const Formula *skipScale(const Formula *f) const {
    auto isZero = [](const Formula *g) { return g->kind == Kind::Number && g->number == 0; };
    if (f->kind == Kind::Negate || (f->kind == Kind::Div && getAny(f->children[1]).isConstant))
      return f->children[0];
    if (f->kind == Kind::Select && (isZero(f->children[1]) || isZero(f->children[2])))
      return f->children[isZero(f->children[2]) ? 1 : 2];
    return f;
  }

  void listFactors(const Formula *f, std::vector<const Formula *> &factors, std::vector<const Formula *> &products) {
    const Formula *inner = skipScale(f);
    if (inner != f)
      return listFactors(inner, factors, products);
    if (f->kind != Kind::Mul)
      return factors.push_back(f);
    products.push_back(f);
    for (const Formula *child : f->children)
      listFactors(child, factors, products);
  }

  static int64_t getSlope(Edge edge) {
    if (!isStep(edge))
      return 0;
    switch (edge.first->kind) {
    case Kind::Mul:
    case Kind::Negate:
      return 1;
    case Kind::Sub:
      return edge.second == 1;
    case Kind::Div: // adjoint / b; -(adjoint * result / b)
      return edge.second == 0 ? 1 : 3;
    case Kind::Call: // slope * adjoint
      return edge.first->children.size() > 1 ? 0 : 2;
    default:
      return 0;
    }
  }

  const OpDef &def;
  std::vector<int64_t> sizes, at;
  int isAddress = 0;
  std::vector<Number> numbers;
  std::vector<std::pair<const ResultInfo *, size_t>> roots;
  std::map<const void *, std::set<unsigned>> readsOf;
  std::map<std::tuple<const void *, bool, std::vector<int64_t>>, size_t> memo;
  std::set<const Formula *> contracting;
};

/// Random operators as text. Indices i j k l; operands of them, one to be subscripted; lets.
class FormulaWriter {
public:
  explicit FormulaWriter(unsigned seed) : random(seed) {}

  std::string write() {
    std::string lets;
    for (unsigned i = 0, count = below(4); i < count; ++i) {
      std::string indices;
      for (char index : {'i', 'j', 'k', 'l'})
        if (below(2))
          indices += index;
      lets += " let a" + std::to_string(i) + " = " + make(2, indices) + ";";
      known.push_back({"a" + std::to_string(i), indices});
    }
    std::string formula = make(4, "ik");
    return "op f(x: [i, j], w: [j, k], c: [k], v: [i, j, k], u: [l], z: [n]) -> (r: [i, k] = " + formula + ") {" +
           lets + " whole n; }";
  }

private:
  unsigned below(unsigned n) { return random() % n; }

  std::string leaf(const std::string &indices) {
    std::vector<std::string> leaves = {"2", "size(j)"};
    auto has = [&](llvm::StringRef wanted) {
      return llvm::all_of(wanted, [&](char index) { return indices.find(index) != std::string::npos; });
    };
    for (auto [needs, text] : {std::pair("ij", "x[i, j]"), std::pair("jk", "w[j, k]"), std::pair("k", "c[k]"),
                               std::pair("ijk", "v[i, j, k]"), std::pair("l", "u[l]"), std::pair("il", "z[i + l]"),
                               std::pair("i", "z[2 * i]"), std::pair("jk", "z[j + k]"), std::pair("i", "i")})
      if (has(needs))
        leaves.insert(leaves.end(), 3, text);
    for (auto &[name, needs] : known)
      if (has(needs))
        leaves.insert(leaves.end(), 3, name);
    return leaves[below(leaves.size())];
  }

  std::string make(unsigned depth, const std::string &indices) {
    if (depth == 0 || below(8) == 0)
      return leaf(indices);
    auto part = [&] { return make(depth - 1, indices); };
    switch (below(10)) {
    case 0:
      return "(" + part() + " + " + part() + ")";
    case 1:
      return "(" + part() + " - " + part() + ")";
    case 2:
      return "(" + part() + " / " + part() + ")";
    case 3:
      return "tanh(" + part() + ")";
    case 4:
      return "max(" + part() + ", " + part() + ")";
    case 5:
      return "where(" + part() + " < " + part() + ", " + part() + ", " + (below(2) ? "0" : part()) + ")";
    case 6:
      return "-(" + part() + ")";
    case 7: {
      for (char index : {'j', 'l'})
        if (indices.find(index) == std::string::npos && below(3))
          return std::string(below(5) ? "sum[" : "max[") + index + "](" + make(depth - 1, indices + index) + ")";
      [[fallthrough]];
    }
    default:
      return "(" + part() + " * " + part() + ")";
    }
  }

  std::mt19937 random;
  std::vector<std::pair<std::string, std::string>> known;
};

class CountFlopsTest : public ::testing::Test {
protected:
  const OpDef &parse(const std::string &op) {
    parsed.emplace("graph Test { " + op + " }");
    EXPECT_TRUE(parsed->graph) << parsed->messages.str() << op;
    return *parsed->graph->defs.all().back();
  }
  static Counts add(const std::vector<FlopTerm> &terms, const std::vector<int64_t> &sizes) {
    Counts counts;
    for (const FlopTerm &term : terms) {
      int64_t flops = term.count;
      for (unsigned index : term.indices)
        flops *= sizes[index];
      (term.flopClass == FlopClass::Contraction ? counts.contraction : counts.other) += flops;
    }
    return counts;
  }
  std::optional<ParsedGraph> parsed;
};
} // namespace

TEST_F(CountFlopsTest, RandomFormulasCostWhatIsCounted) {
  for (unsigned seed = 0; seed < 3000; ++seed) {
    std::string text = FormulaWriter(seed).write();
    const OpDef &def = parse(text);
    std::vector<int64_t> sizes;
    for (const IndexInfo &index : def.indices)
      sizes.push_back(index.name == "i" ? 2 : index.name == "j" ? 3 : index.name == "k" ? 4 : 5);
    CountingRun run(def, sizes);
    ASSERT_EQ(add(countFlops(def), sizes), run.forward) << text;
    llvm::SmallVector<unsigned, 6> operands;
    std::set<unsigned> wanted;
    for (unsigned i = 0; i < def.operands.size(); ++i)
      if (seed >> i & 1) {
        operands.push_back(i);
        wanted.insert(i);
      }
    ASSERT_EQ(add(countGradientFlops(def, {0}, operands), sizes), run.countGradients(wanted)) << text << " of " << seed;
  }
}

TEST_F(CountFlopsTest, ClosedForms) {
  struct Case {
    const char *op;
    Counts forward, gradients;
  };
  // Sizes: b = 2, d = 3, f = 5, n and u = 7, t = 11.
  const Case cases[] = {
      // A product with a bias: 2bdf and bf; twice 2bdf, and bf.
      {"op f(x: [b, d], w: [d, f], c: [f]) -> (y: [b, f] = sum[d](x[b, d] * w[d, f]) + c[f]);", {60, 10}, {120, 10}},
      // n is only subscripted: 2btdf.
      {"op f(x: [b, n, d], w: [d, f]) -> (y: [b, t, f] = sum[d](x[b, 2 * t, d] * w[d, f])) { whole n, t; }",
       {660, 0},
       {1320, 0}},
      // Two sums, of which the second goes on where the first ends: 2bd + 2bu.
      {"op f(x: [b, d], w: [d], y: [b, u], v: [u]) -> (z: [b] = sum[d](x[b, d] * w[d]) + sum[u](y[b, u] * v[u]));",
       {40, 0},
       {40, 20}},
      // A convolution: 2btu forward; x[b, t + u] and w[u] get contributions of each.
      {"op f(x: [b, n], w: [u]) -> (y: [b, t] = sum[u](x[b, t + u] * w[u])) { whole n, t; }", {308, 0}, {616, 0}},
      // A square is no contraction.
      {"op f(x: [b, d]) -> (y: [b] = sum[d](x[b, d] * x[b, d]));", {0, 12}, {0, 18}},
      // A let counts once.
      {"op f(x: [b]) -> (y: [b] = a * a) { let a = tanh(x[b]); }", {0, 4}, {0, 10}},
  };
  for (const Case &c : cases) {
    const OpDef &def = parse(c.op);
    std::vector<int64_t> sizes;
    llvm::SmallVector<unsigned, 4> all;
    for (const IndexInfo &index : def.indices)
      sizes.push_back(index.name == "b"   ? 2
                      : index.name == "d" ? 3
                      : index.name == "f" ? 5
                      : index.name == "t" ? 11
                                          : 7);
    for (unsigned i = 0; i < def.operands.size(); ++i)
      all.push_back(i);
    EXPECT_EQ(add(countFlops(def), sizes), c.forward) << c.op;
    EXPECT_EQ(add(countGradientFlops(def, {0}, all), sizes), c.gradients) << c.op;
  }
}

TEST_F(CountFlopsTest, ChainedLetsCostOnceEach) {
  // 2^40 if each let were followed wherever it stands.
  for (unsigned count : {40u, 20000u}) {
    std::string lets = "let a0 = x[b];";
    for (unsigned i = 1; i <= count; ++i) {
      std::string before = "a" + std::to_string(i - 1);
      lets += "let a" + std::to_string(i) + " = " + before + " * " + before + ";";
    }
    const OpDef &def = parse("op f(x: [b]) -> (y: [b] = a" + std::to_string(count) + ") {" + lets + "}");
    EXPECT_EQ(add(def.flopTerms, {1}).other, count);
    EXPECT_EQ(add(countGradientFlops(def, {0}, {0}), {1}).other, 3 * count); // two products and their sum
  }
}
