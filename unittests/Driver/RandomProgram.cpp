//===- RandomProgram.cpp - programs, strategies and meshes by chance ------===//
#include "RandomProgram.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <numeric>

using namespace stage;

namespace {
/// Every operator that a program may use; most take any leading indices.
const char *const operators[] = {
    "op act(x: [...]) -> [...] = x * sigmoid(x);",
    "op bend(x: [...]) -> [...] = tanh(x) + x / 4 { saves x; }",
    "op calm(x: [...]) -> [...] = tanh(x);",
    "op gated(x: [...], y: [...]) -> [...] = tanh(x) * y { saves x, y; }",
    "op norm(x: [..., n], g: [n]) -> [..., n] = x * rsqrt(mean[n](x * x) + 0.1) * g { whole n; saves x, g; }",
    "op soften(x: [..., n]) -> [..., n] { let w = exp(tanh(x)); result = w / sum[n](w); whole n; saves result; }",
    "op drop(x: [...]) -> [...] = x * random(0.75) { saves mask: u8[...]; }",
    "op blend(x: [..., n]) -> [..., n] { opaque; whole n; }",
    "op pool(x: [..., n]) -> [..., n] { opaque; }",
    "op highest(x: [..., n]) -> [...] = max[n](x);",
    "op exps(x: [..., n]) -> [...] = sum[n](exp(tanh(x)));",
    "op turn(x: [..., n]) -> [..., n] = where(n < size(n) / 2, x[..., n], 0 - x[..., n]) * cos(n) { whole n; }",
    "op behind(x: [b, s, d]) -> [b, s, d] { let w = where(s > 0, x[b, max(s - 1, 0), d], 0); result = x + w / 2; whole s; }",
    "op attend(q: [b, s, d], k: [b, t, d]) -> [b, s, d] { let w = where(t <= s, exp(tanh(sum[d](q * k))), 0); "
    "result = sum[t](w * k) / sum[t](w); whole d; fold t carrying lse: f32[b, s]; mask causal(s, t); flops = 4 * b * area * d; "
    "saves q, k, result; saves lse: f32[b, s]; backward flops = 8 * b * area * d; }",
    "op find(ids: i32[...], table: [v, n]) -> [..., n] = table[ids, n];",
    "op loss(x: [...]) -> f32[] = mean[...](x * x + x / 2);",
};

class Generator {
public:
  explicit Generator(uint64_t seed) : state(seed * 0x9e3779b97f4a7c15u + 0x2545f4914f6cdd1du) {}

  std::vector<std::string> run() {
    chooseMesh();
    std::vector<std::pair<std::string, std::string>> shardRules = makeRules();
    makeModel();
    // What nothing uses is an error: only dims, ops and axes that are used are declared.
    std::vector<std::string> rules;
    for (auto &[dim, rule] : shardRules)
      if (isUsed(dim))
        rules.push_back(rule);
    for (const std::string &rule : makePatternRules())
      rules.push_back(rule);
    if (!pipeline.empty())
      rules.push_back("pipeline layers over " + pipeline + " { schedule = " + schedule + "; }");
    if (chance(6))
      rules.push_back("keep gathered over " + pick(axes) + ";");
    std::vector<std::string> kept, parameters;
    for (unsigned i = 0; i < axes.size(); ++i) {
      bool isNamed = llvm::any_of(rules, [&](const std::string &rule) { return hasWord(rule, axes[i]); });
      if (!isNamed && !chance(5))
        continue;
      kept.push_back(axes[i]);
      parameters.push_back(axes[i] + " = " + std::to_string(sizes[i]));
    }
    std::vector<std::string> model;
    std::swap(model, lines);
    for (const char *op : operators)
      if (llvm::any_of(model, [&](const std::string &line) { return hasWord(line, getName(op)); }))
        lines.push_back(op);
    lines.insert(lines.end(), model.begin(), model.end());
    lines.push_back("strategy s(" + llvm::join(parameters, ", ") + ") {");
    if (!kept.empty())
      lines.push_back("  mesh (" + llvm::join(kept, ", ") + ");");
    for (const std::string &rule : rules)
      lines.push_back("  " + rule);
    lines.push_back("}");
    makeSchedule();
    makeJob();
    renameDims();
    return std::move(lines);
  }

private:
  struct Value {
    std::string name;
    std::vector<std::string> dims;
  };

  uint64_t next() {
    state += 0x9e3779b97f4a7c15u;
    uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  unsigned below(unsigned n) { return next() % n; }
  bool chance(unsigned percent) { return below(100) < percent; }
  template <typename T> const T &pick(const std::vector<T> &from) { return from[below(from.size())]; }

  static std::string getName(llvm::StringRef op) { return op.drop_front(3).split('(').first.str(); }
  /// True if a line has the word, not as a part of another.
  static bool hasWord(llvm::StringRef line, llvm::StringRef word) {
    for (size_t at = line.find(word); at != llvm::StringRef::npos; at = line.find(word, at + 1)) {
      bool isStart = at == 0 || !llvm::isAlnum(line[at - 1]);
      bool isEnd = at + word.size() == line.size() || !llvm::isAlnum(line[at + word.size()]);
      if (isStart && isEnd)
        return true;
    }
    return false;
  }
  /// True if the model has a tensor with this dim.
  bool isUsed(const std::string &dim) const {
    return llvm::any_of(llvm::ArrayRef<std::string>(lines).drop_front(), [&](const std::string &line) {
      return !llvm::StringRef(line).startswith("  dim") && hasWord(line, dim);
    });
  }

  /// Gives dims the names of indices of the operators: what a pack stands for is called after them.
  void renameDims() {
    for (auto [name, others] : {std::pair("S", "NTV"), std::pair("D", "NET")}) {
      if (!chance(40))
        continue;
      std::string other(1, others[below(3)]);
      if (llvm::any_of(lines, [&](const std::string &line) { return hasWord(line, other); }))
        continue;
      for (std::string &line : lines)
        if (!llvm::StringRef(line).startswith("op "))
          replaceWord(line, name, other);
    }
  }
  static void replaceWord(std::string &line, llvm::StringRef word, llvm::StringRef other) {
    auto isPart = [&](size_t at) { return at < line.size() && (llvm::isAlnum(line[at]) || line[at] == '_'); };
    for (size_t at = line.find(word.str()); at != std::string::npos; at = line.find(word.str(), at + 1))
      if ((at == 0 || !isPart(at - 1)) && !isPart(at + word.size()))
        line.replace(at, word.size(), other.str());
  }

  //===--- mesh and rules -------------------------------------------------===//

  void chooseMesh() {
    const std::vector<int64_t> choices = {1, 2, 2, 2, 3, 4, 6};
    std::vector<std::string> names = {"a", "b", "c", "p"};
    int64_t ranks = 1;
    unsigned count = below(4) + 1;
    hasLayers = chance(60);
    bool isPipelined = hasLayers && chance(45);
    for (unsigned i = 0; i < count; ++i) {
      unsigned which = below(names.size());
      std::string name = names[which];
      if (name == "p" && !isPipelined)
        continue;
      names.erase(names.begin() + which);
      int64_t size = pick(choices);
      if (ranks * size > 12)
        size = 1;
      ranks *= size;
      axes.push_back(name);
      sizes.push_back(size);
      if (name == "p")
        pipeline = name, stages = size;
    }
    if (axes.empty()) {
      axes.push_back("a");
      sizes.push_back(2);
    }
  }

  int64_t sizeOf(const std::string &axis) const { return sizes[llvm::find(axes, axis) - axes.begin()]; }

  /// Some axes, in any order, as a rule names them.
  std::string someAxes(unsigned most, int64_t *product = nullptr) {
    std::vector<std::string> left;
    for (const std::string &axis : axes)
      if (axis != pipeline)
        left.push_back(axis);
    std::vector<std::string> chosen;
    for (unsigned n = below(most) + 1; n && !left.empty(); --n) {
      unsigned which = below(left.size());
      chosen.push_back(left[which]);
      if (product)
        *product *= sizeOf(left[which]);
      left.erase(left.begin() + which);
    }
    if (chosen.empty())
      return "()";
    return chosen.size() == 1 ? chosen[0] : "(" + llvm::join(chosen, ", ") + ")";
  }

  /// Rules with the dims that they are for; decides the sizes of all dims.
  std::vector<std::pair<std::string, std::string>> makeRules() {
    std::vector<std::pair<std::string, std::string>> rules;
    // Two dims of one value over one axis are refused; most programs give each axis to one dim.
    std::vector<std::string> all = axes;
    int64_t everyAxis = 1;
    for (const std::string &axis : axes)
      everyAxis *= axis == pipeline ? 1 : sizeOf(axis);
    bool isSharing = chance(12);
    for (const std::string &name : {"B", "S", "D", "F", "K", "V"}) {
      int64_t product = 1;
      bool isMirrored = false;
      if (chance(name == std::string("B") ? 50 : 40)) {
        std::string over = someAxes(2, &product);
        if (!isSharing)
          llvm::erase_if(axes, [&](const std::string &axis) { return hasWord(over, axis); });
        isMirrored = over.size() == 1 && name != std::string("B") && chance(15);
        if (over != "()")
          rules.emplace_back(name, "shard " + std::string(name) + " over " + over + (isMirrored ? " order mirrored;" : ";"));
      }
      int64_t size = product * (isMirrored ? 2 : 1);
      if (size < 2 || chance(30))
        size *= 2;
      // Rules for single values may split any dim over any axes.
      if (chance(50))
        size = std::lcm(size, everyAxis);
      if (chance(2))
        ++size; // does not come out even
      dims.push_back({name, size});
      batchProduct = name == std::string("B") ? product : batchProduct;
    }
    axes = all;
    return rules;
  }

  //===--- the model ------------------------------------------------------===//

  static std::string shape(const std::vector<std::string> &dims) { return "[" + llvm::join(dims, ", ") + "]"; }
  static std::string indices(const std::vector<std::string> &dims) {
    std::string text;
    for (const std::string &dim : dims)
      text += (text.empty() ? "" : ", ") + llvm::StringRef(dim).lower();
    return text;
  }
  std::string fresh(const char *prefix) { return prefix + std::to_string(counter++); }
  void say(const std::string &line) { lines.push_back(indent + line); }

  std::string newParam(const std::vector<std::string> &dims) {
    std::string name = fresh("w");
    say("param " + name + ": " + shape(dims) + ";");
    params.push_back({name, dims});
    return name;
  }

  /// A dim of the pool that `dims` has not; empty if there is none.
  std::string otherDim(const std::vector<std::string> &dims) {
    std::vector<std::string> pool;
    for (const char *name : {"D", "F", "K"})
      if (!llvm::is_contained(dims, name))
        pool.push_back(name);
    return pool.empty() ? "" : pick(pool);
  }

  /// A shape, with an axis on a dim perhaps.
  std::string annotation(const std::vector<std::string> &dims) {
    std::string text;
    bool used = false;
    for (const std::string &dim : dims) {
      text += (text.empty() ? "" : ", ") + dim;
      if (!used && chance(40)) {
        text += "@" + (chance(25) ? std::string("()") : someAxes(2));
        used = true;
      }
    }
    return ": [" + text + "]" + (!used && chance(50) ? " replicated(" + pick(axes) + ")" : "");
  }

  void define(const std::string &expression, std::vector<std::string> dims, std::vector<Value> &values) {
    std::string name = fresh("v");
    say("let " + name + (chance(8) ? annotation(dims) : "") + " = " + expression + ";");
    named.push_back({name, dims});
    values.push_back({name, std::move(dims)});
  }

  /// One statement that makes a new value from those in sight.
  void makeStatement(std::vector<Value> &values) {
    Value x = chance(60) ? values.back() : pick(values);
    std::vector<Value> alike;
    for (const Value &value : values)
      if (value.dims == x.dims)
        alike.push_back(value);
    switch (below(12)) {
    case 0:
    case 1: // a contraction with a parameter, or two dims at once
    case 2: {
      std::string reduced = x.dims.back(), made = otherDim(x.dims);
      if (made.empty() || reduced == "B" || reduced == "S")
        return;
      std::vector<std::string> out(x.dims.begin(), x.dims.end() - 1);
      if (chance(20)) { // a head of its own
        std::string second = otherDim({x.dims[0], reduced, made, "B"});
        if (!second.empty() && !llvm::is_contained(x.dims, second) && second != made) {
          std::string w = newParam({reduced, made, second});
          out.push_back(made);
          out.push_back(second);
          return formula(out, reduced, x, w, {reduced, made, second}, values);
        }
      }
      std::vector<std::string> wide = chance(80) ? std::vector<std::string>{reduced, made}
                                                 : std::vector<std::string>{made, reduced};
      std::string w = newParam(wide);
      out.push_back(made);
      return formula(out, reduced, x, w, wide, values);
    }
    case 3: {
      Value y = pick(alike);
      std::string sum = x.name + " / 2 + " + y.name;
      if (chance(40))
        sum = x.name + " + " + y.name + " + " + pick(alike).name;
      return define(sum, x.dims, values);
    }
    case 4:
      return define(x.name + " * " + pick(alike).name, x.dims, values);
    case 5: {
      if (x.dims.empty())
        return;
      std::string w = newParam({x.dims.back()});
      return define(x.name + (chance(50) ? " + " : " * ") + w, x.dims, values);
    }
    case 6: {
      const std::vector<std::string> names = {"act", "bend", "drop"};
      return define(pick(names) + "(" + x.name + ")", x.dims, values);
    }
    case 7: {
      const std::vector<std::string> names = {"soften", "blend", "pool", "turn"};
      return define(pick(names) + "(" + x.name + ")", x.dims, values);
    }
    case 8: {
      if (x.dims.size() < 2)
        return;
      if (chance(50))
        return define("norm(" + x.name + ", " + newParam({x.dims.back()}) + ")", x.dims, values);
      return define("gated(" + x.name + ", " + pick(alike).name + ")", x.dims, values);
    }
    case 9: {
      if (x.dims.size() < 3)
        return;
      std::vector<std::string> out(x.dims.begin(), x.dims.end() - 1);
      const std::vector<std::string> names = {"highest", "exps"};
      return define(pick(names) + "(" + x.name + ")", out, values);
    }
    case 10: { // a reduction or a product of activations by a formula in place
      if (x.dims.size() < 2)
        return;
      unsigned which = below(x.dims.size());
      std::vector<std::string> out = x.dims;
      std::string reduced = out[which];
      out.erase(out.begin() + which);
      std::string name = fresh("v"), y = pick(alike).name, at = "[" + indices(x.dims) + "]";
      say("let " + name + "[" + indices(out) + "] = " + (chance(30) ? "mean" : "sum") + "[" + indices({reduced}) + "](" +
          x.name + at + (chance(60) ? " * " + y + at : "") + ");");
      values.push_back({name, out});
      return;
    }
    default:
      if (x.dims.size() != 3 || x.dims[0] != "B" || x.dims[1] != "S")
        return;
      if (chance(50))
        return define("behind(" + x.name + ")", x.dims, values);
      return define("attend(" + x.name + ", " + pick(alike).name + ")", x.dims, values);
    }
  }

  void formula(const std::vector<std::string> &out, const std::string &reduced, const Value &x, const std::string &w,
               const std::vector<std::string> &wide, std::vector<Value> &values) {
    std::string name = fresh("v");
    say("let " + name + "[" + indices(out) + "] = sum[" + indices({reduced}) + "](" + x.name + "[" + indices(x.dims) +
        "] * " + w + "[" + indices(wide) + "]);");
    values.push_back({name, out});
  }

  void makeModel() {
    lines.push_back("");
    indent = "  ";
    say("dim B, S;");
    std::vector<Value> values;
    if (chance(50)) {
      say("input ids: i32[B, S];");
      values.push_back({fresh("v"), {"B", "S", "D"}});
      say("let " + values.back().name + " = find(ids, " + newTable() + ");");
    } else {
      say("input x0: [B, S, D];");
      values.push_back({"x0", {"B", "S", "D"}});
    }
    for (unsigned n = below(4); n; --n)
      makeStatement(values);
    if (hasLayers)
      makeLayers(values);
    for (unsigned n = below(3); n; --n)
      makeStatement(values);
    // An output layer tied to the embedding: a parameter of two stages.
    if (!table.empty() && values.back().dims == std::vector<std::string>{"B", "S", "D"} && chance(40)) {
      std::string name = fresh("v");
      say("let " + name + "[b, s, v] = sum[d](" + values.back().name + "[b, s, d] * " + table + "[v, d]);");
      values.push_back({name, {"B", "S", "V"}});
    }
    // Every model has something to train.
    Value last = values.back();
    std::string scale = last.dims.empty() ? "" : newParam({last.dims.back()});
    say("return loss(" + last.name + (scale.empty() ? "" : " * " + scale) + ");");
    lines.push_back("}");
    std::vector<std::string> used;
    for (const auto &[name, size] : dims)
      if (name != "B" && name != "S" && isUsed(name))
        used.push_back(name + " = " + std::to_string(size));
    lines.front() = "model M(" + llvm::join(used, ", ") + ") {";
  }

  /// A table that is read by ids; the output may read it again.
  std::string newTable() {
    std::string name = fresh("w");
    say("param " + name + ": [V, D];");
    params.push_back({name, {"V", "D"}});
    return table = name;
  }

  void makeLayers(std::vector<Value> &values) {
    Value start = pick(values);
    if (schedule == interleaved && stages == 1)
      schedule = "in_turn";
    unsigned chunks = schedule == interleaved ? 2 : 1;
    iterations = stages > 1 ? stages * chunks * (1 + below(2)) : 1 + below(3);
    carriedDims = start.dims;
    say("var h = " + start.name + ";");
    say("repeat layers[" + std::to_string(iterations) + "] {");
    indent = "    ";
    std::vector<Value> inside = {{"h", start.dims}};
    if (pipeline.empty() && chance(20))
      inside.push_back(pick(values)); // used in every iteration
    for (unsigned n = 1 + below(5); n; --n)
      makeStatement(inside);
    std::vector<Value> alike;
    for (const Value &value : inside)
      if (value.dims == start.dims)
        alike.push_back(value);
    const Value &chosen = alike.back();
    // What is carried stays bounded, however many layers there are.
    if (chosen.name == "h" || chance(50))
      say("h = calm(" + chosen.name + ") + h / 2;");
    else
      say("h = calm(" + chosen.name + ");");
    indent = "  ";
    say("}");
    values.push_back({"h", start.dims});
  }

  std::vector<std::string> makePatternRules() {
    // Patterns that match something, and what of it can be split.
    std::vector<std::pair<std::string, std::vector<std::string>>> places;
    auto has = [&](llvm::StringRef word) {
      return llvm::any_of(lines, [&](const std::string &line) { return hasWord(line, word); });
    };
    for (const char *op : {"pool", "highest", "exps", chance(10) ? "soften" : "pool"})
      if (has(op))
        places.push_back({std::string("**.") + op + "()", {"n"}});
    for (const char *op : {"attend", "behind"})
      if (has(op))
        places.push_back({std::string("**.") + op + "()", {"b", op == std::string("attend") ? "s" : "d"}});
    if (hasLayers)
      places.push_back({"layers[*].h", carriedDims});
    for (const Value &param : params)
      places.push_back({"param **." + param.name, param.dims});
    for (const Value &value : named)
      places.push_back({"**." + value.name, value.dims});
    std::vector<std::string> rules;
    for (unsigned n = below(3); n; --n) {
      const auto &[place, names] = pick(places);
      rules.push_back("at " + place + ": shard " + pick(names) + " over " + someAxes(2) + ";");
    }
    return rules;
  }

  //===--- schedule and job -----------------------------------------------===//

  void makeSchedule() {
    if (pipeline.empty())
      return;
    if (schedule == interleaved)
      lines.insert(lines.begin(), "import std.schedules (interleaved);");
    lines.push_back("schedule all_then_all(p, m, r) { for i in 0..m { forward(i); } for i in 0..m { backward(i); } }");
    lines.push_back("schedule last_first(p, m, r) { for i in 0..m { forward(i); } for i in 0..m { backward(m - 1 - i); } }");
    lines.push_back("schedule in_turn(p, m, r) { let w = min(m, p - r); for i in 0..w { forward(i); } "
                    "for i in 0..m - w { backward(i); forward(w + i); } for i in m - w..m { backward(i); } }");
  }

  void makeJob() {
    int64_t rounds = schedule == interleaved && stages > 1 ? stages : 1;
    int64_t microbatches = rounds * (1 + below(rounds > 1 ? 2 : 4)), batch = dims.front().second;
    // `batch` sequences per microbatch, `microbatch` of them on each rank that splits them.
    int64_t each = std::max<int64_t>(1, batch / std::max<int64_t>(1, batchProduct));
    lines.push_back("job j {");
    lines.push_back("  model = M();");
    lines.push_back("  step = train(B = " + std::to_string(each * batchProduct * microbatches) + ", S = " +
                    std::to_string(dims[1].second) + ", microbatch = " + std::to_string(each) + ", optimizer = adamw);");
    lines.push_back(std::string("  precision = ") + (chance(50) ? "fp32;" : "bf16_mixed;"));
    lines.push_back("  strategy = s();");
    lines.push_back("}");
  }

  uint64_t state;
  std::vector<std::string> lines;
  std::string indent;
  std::vector<std::string> axes;
  std::vector<Value> params, named;
  std::vector<int64_t> sizes;
  std::string pipeline;
  const std::string interleaved = "interleaved(v = 2)";
  std::string schedule = std::vector<std::string>{"all_then_all", "last_first", "in_turn", interleaved}[below(4)];
  bool hasLayers = false;
  int64_t stages = 1, iterations = 0, batchProduct = 1;
  std::vector<std::pair<std::string, int64_t>> dims;
  std::vector<std::string> carriedDims;
  std::string table;
  unsigned counter = 0;
};
} // namespace

std::vector<std::string> stage::makeRandomProgram(uint64_t seed) { return Generator(seed).run(); }
