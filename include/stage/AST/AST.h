//===- AST.h - what a .stg program says ------------------------*- C++ -*-===//
//
// Nodes as they are written: no name is resolved, nothing is evaluated. Nodes live
// in an ASTContext's arena and are trivially destructible; lists are ArrayRefs and
// names StringRefs into the arena. Every node has the range of its source text.
//
//   let h = x + Attention(rms_norm(x, g1), H) as attn;
//   LetStmt { targets = {h}, value = Binary(Add, Name x, Call(Name Attention, ..., as = attn)) }
//
// `as` binds to the call it follows. Op parameters, module parameters and so on are
// all `Param`s. The kinds are listed in Nodes.def.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_AST_AST_H
#define STAGE_AST_AST_H

#include "stage/Support/Diagnostics.h"
#include "stage/Symbolic/Quantity.h"
#include "stage/Symbolic/Size.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Allocator.h"
#include "llvm/Support/Casting.h"
#include <tuple>

namespace stage::ast {

using llvm::ArrayRef;
using llvm::StringRef;

/// Owns the nodes of all files of a compilation.
class ASTContext {
public:
  template <typename T> T *create(T node) { return new (arena.Allocate<T>()) T(std::move(node)); }
  template <typename T> ArrayRef<T> copy(ArrayRef<T> list) {
    T *data = arena.Allocate<T>(list.size());
    std::uninitialized_copy(list.begin(), list.end(), data);
    return ArrayRef<T>(data, list.size());
  }
  StringRef copy(StringRef text) {
    char *data = arena.Allocate<char>(text.size());
    std::copy(text.begin(), text.end(), data);
    return StringRef(data, text.size());
  }

private:
  llvm::BumpPtrAllocator arena;
};

/// Lists the fields of a struct, for code that visits all fields of all nodes (see TreeBytes.cpp): a new field is said
/// once. A node's kind and range, which every node has, are not listed. A test compares the lists with the structs.
#define AST_FIELDS(...)                                                                                                \
  auto fields() { return std::tie(__VA_ARGS__); }                                                                      \
  auto fields() const { return std::tie(__VA_ARGS__); }

/// A name and where it stands.
struct Ident {
  StringRef name;
  SMRange range;
  SMLoc loc() const { return range.Start; }
  explicit operator bool() const { return !name.empty(); }
  AST_FIELDS(name, range)
};

enum class NodeKind : uint8_t {
#define AST_NODE(kind, category) kind,
#include "stage/AST/Nodes.def"
};

struct Node {
  NodeKind kind;
  SMRange range;
  SMLoc loc() const { return range.Start; }
};
struct Expr : Node {};
struct Stmt : Node {};
struct Decl;

#define AST_NODE_FIELDS(KIND, ...)                                                                                     \
  static constexpr NodeKind ownKind = NodeKind::KIND;                                                                  \
  static bool classof(const Node *node) { return node->kind == ownKind; }                                              \
  AST_FIELDS(__VA_ARGS__)

//===----------------------------------------------------------------------===//
// Expressions: of tensors, sizes, compile-time values and element formulas alike
//===----------------------------------------------------------------------===//

/// `32`, `4Ki`, `14_336`, `1.25`, `5.0e5`. Exact value; `isReal` if written with a point or exponent.
struct NumberExpr : Expr {
  StringRef text;
  Rational value; ///< If `isExact`, as every whole number is.
  double real = 0;
  bool isReal = false;
  bool isExact = true; ///< A fraction may have no numerator and denominator of 127 bits: `1e-40`.
  AST_NODE_FIELDS(NumberExpr, text, value, real, isReal, isExact)
};
/// `450GB/s`.
struct QuantityExpr : Expr {
  StringRef text;
  Rational value; ///< In base units.
  Dimension dimension;
  AST_NODE_FIELDS(QuantityExpr, text, value, dimension)
};
struct BoolExpr : Expr {
  bool value;
  AST_NODE_FIELDS(BoolExpr, value)
};
/// Without the quotes.
struct StringExpr : Expr {
  StringRef text;
  AST_NODE_FIELDS(StringExpr, text)
};
struct NameExpr : Expr {
  StringRef name;
  AST_NODE_FIELDS(NameExpr, name)
};
/// `MoE.E`, `attn.q`
struct MemberExpr : Expr {
  Expr *base;
  Ident member;
  AST_NODE_FIELDS(MemberExpr, base, member)
};
enum class UnaryOp : uint8_t { Negate, Not };
struct UnaryExpr : Expr {
  UnaryOp op;
  Expr *operand;
  AST_NODE_FIELDS(UnaryExpr, op, operand)
};
/// `Div` is exact `/`; `FloorDiv` is the word `div`; `Mod` is `%`.
enum class BinaryOp : uint8_t {
  Add,
  Sub,
  Mul,
  Div,
  FloorDiv,
  Mod,
  Less,
  LessEqual,
  Greater,
  GreaterEqual,
  Equal,
  NotEqual,
  And,
  Or
};
struct BinaryExpr : Expr {
  BinaryOp op;
  SMLoc opLoc;
  Expr *left, *right;
  AST_NODE_FIELDS(BinaryExpr, op, opLoc, left, right)
};
struct Argument {
  Ident name; ///< Empty: positional.
  Expr *value;
  AST_FIELDS(name, value)
};
/// `f(a, n = b)`, `sum[d](x)` (callee is a name, `indices` the bracket), `Module(...) as name`, `f32(x)`.
struct CallExpr : Expr {
  Expr *callee;
  ArrayRef<Expr *> indices; ///< Of a reduction; `mean[...](x)` has an EllipsisExpr.
  bool hasIndices = false;
  ArrayRef<Argument> args;
  Ident as; ///< Instance name; empty if none.
  AST_NODE_FIELDS(CallExpr, callee, indices, hasIndices, args, as)
};
/// `x[b, s, d]`, `wpe[0..S]`, `x[0, ...]`
struct IndexExpr : Expr {
  Expr *base;
  ArrayRef<Expr *> subscripts;
  AST_NODE_FIELDS(IndexExpr, base, subscripts)
};
/// `0..L`
struct RangeExpr : Expr {
  Expr *begin, *end;
  AST_NODE_FIELDS(RangeExpr, begin, end)
};
/// `if c { a } else { b }`
struct IfExpr : Expr {
  Expr *condition, *thenExpr, *elseExpr;
  AST_NODE_FIELDS(IfExpr, condition, thenExpr, elseExpr)
};
struct TupleExpr : Expr {
  ArrayRef<Expr *> elements;
  AST_NODE_FIELDS(TupleExpr, elements)
};
struct ListExpr : Expr {
  ArrayRef<Expr *> elements;
  AST_NODE_FIELDS(ListExpr, elements)
};
/// `[e for i in a..b]`: e for each i, of a range or of a list.
struct ListForExpr : Expr {
  Expr *element;
  Ident variable;
  Expr *source;
  AST_NODE_FIELDS(ListForExpr, variable, source, element)
};
/// `...` or `...a`: a pack of indices or dims.
struct EllipsisExpr : Expr {
  StringRef name; ///< Empty: the anonymous pack.
  AST_NODE_FIELDS(EllipsisExpr, name)
};
/// `(k g e)`, `(c * q)` in a shape: several indices as one dim, first outermost.
struct CompoundExpr : Expr {
  ArrayRef<Ident> indices;
  AST_NODE_FIELDS(CompoundExpr, indices)
};
/// `k: H`, `(k e): D` in the brackets of a formula in place: an index, and the size of which it is.
struct SizedIndexExpr : Expr {
  Expr *index;
  Expr *size;
  AST_NODE_FIELDS(SizedIndexExpr, index, size)
};
struct OpParam;
struct TensorType;
/// `op(x: [b, s, d], w: [d, f]) -> [b, s, f]`: an op written where it is used. Each operand is an expression.
struct OpExpr : Expr {
  struct Operand {
    Expr *value;
    TensorType *type;
    AST_FIELDS(value, type)
  };
  ArrayRef<Operand> operands;
  ArrayRef<TensorType *> results;
  Expr *formula; ///< Null: the contraction that the indices say.
  AST_NODE_FIELDS(OpExpr, operands, results, formula)
};
/// `for T in 4Ki..8Ki`, an argument of `infer(...)`.
struct ForArgExpr : Expr {
  Ident variable;
  Expr *range_;
  AST_NODE_FIELDS(ForArgExpr, variable, range_)
};
/// `megatron(tp = 8) with recompute_full()`: a strategy of a job, and parts that are added to it.
struct WithExpr : Expr {
  Expr *base;
  ArrayRef<Expr *> parts;
  AST_NODE_FIELDS(WithExpr, base, parts)
};

//===----------------------------------------------------------------------===//
// Types and parameters
//===----------------------------------------------------------------------===//

/// `tp` or `(cp, tp)` or `()`, behind `@` or `over`.
struct AxisListSyntax {
  ArrayRef<Ident> axes;
  SMRange range;
  AST_FIELDS(axes, range)
};

/// One position of a shape: `B`, `B@dp`, `2 * D`, `...`, `(k g e)`, or `t: T` (an index and its size).
struct ShapeDim {
  Ident index; ///< The `t` of `t: T`; empty: none.
  Expr *size;
  bool hasAxes = false;
  AxisListSyntax axes;
  AST_FIELDS(index, size, hasAxes, axes)
};

/// `[B@dp, S, D] partial(tp)`, `f32[b, s]`, `[B, S, D] replicated(tp)`.
struct TensorType : Node {
  Ident dtype; ///< Empty: by the precision.
  ArrayRef<ShapeDim> dims;
  bool hasPartial = false;
  Ident partialReduce; ///< `max` of `partial(max, tp)`; empty: sum
  AxisListSyntax partial;
  bool hasReplicated = false;
  AxisListSyntax replicated;
  AST_NODE_FIELDS(TensorType, dtype, dims, hasPartial, partialReduce, partial, hasReplicated, replicated)
};

/// A parameter of anything: `x: [B, S, D]`, `theta: real = 5.0e5`, `slots: size c`, `H`, `KV = H`.
struct Param {
  Ident name;
  TensorType *tensor = nullptr; ///< Null: a compile-time value.
  Ident scalarKind;             ///< `real`, `size`, `bytes`, ...; empty: any
  Ident sizeIndex;              ///< the `c` of `slots: size c`
  Expr *legal = nullptr;        ///< A list or range of values; null: any
  Expr *defaultValue = nullptr;
  /// Behind the semicolon of a strategy's parameters: it is given to a part, and kept for programs that gave it before
  /// there were parts.
  bool isForwarded = false;
  ArrayRef<StringRef> doc; ///< `///` lines before it, without the slashes.
  AST_FIELDS(name, tensor, scalarKind, sizeIndex, legal, defaultValue, isForwarded, doc)
};

//===----------------------------------------------------------------------===//
// Statements of modules, models and op bodies
//===----------------------------------------------------------------------===//

/// `param wk, wv: [D, KV, E];` `input tokens: i32[B, S];` `buffer ...;` `cache keys: [B, S, KV, E] last window;`
enum class TensorDeclKind : uint8_t { Param, Input, Buffer, Cache };
struct TensorDeclStmt : Stmt {
  TensorDeclKind declKind;
  ArrayRef<Ident> names;
  TensorType *type;
  Expr *last;  ///< Of a cache: how many positions it keeps. Null: all.
  bool isPast; ///< These are all from before a unit: `past n`, not `last n`.
  AST_NODE_FIELDS(TensorDeclStmt, declKind, names, type, last, isPast)
};
/// `dim B, S;` (values null) or `dim G = H / KV;`
struct DimStmt : Stmt {
  ArrayRef<Ident> names;
  Expr *value; ///< Null: bound by the step.
  ArrayRef<StringRef> doc;
  AST_NODE_FIELDS(DimStmt, names, value, doc)
};
/// `let x = e;` `var x: T = e;` `let (a, b) = e;` `let q[b, s] = formula;` and, without a keyword, `x = e;`
struct LetStmt : Stmt {
  enum class Form : uint8_t { Let, Var, Assign };
  Form form;
  ArrayRef<Ident> targets; ///< More than one: a tuple pattern.
  TensorType *type;        ///< Null: none written.
  bool isFormula = false;  ///< `let q[b, s] = ...`: a formula in place over `indices`
  ArrayRef<Expr *> indices;
  Expr *value;
  AST_NODE_FIELDS(LetStmt, form, targets, type, isFormula, indices, value)
};
/// `return e;` `return [b, s, d] = formula;`
struct ReturnStmt : Stmt {
  bool isFormula = false;
  ArrayRef<Expr *> indices;
  Expr *value;
  AST_NODE_FIELDS(ReturnStmt, isFormula, indices, value)
};
/// `output logits;`: what inference makes, and its end.
struct OutputStmt : Stmt {
  Expr *value;
  AST_NODE_FIELDS(OutputStmt, value)
};
/// `repeat layers[i in 0..L] { }` `repeat layers[L] { }`
struct RepeatStmt : Stmt {
  Ident name;
  Ident variable; ///< Empty: none.
  Expr *begin;    ///< Null: 0.
  Expr *end;
  ArrayRef<Stmt *> body;
  AST_NODE_FIELDS(RepeatStmt, name, variable, begin, end, body)
};
struct IfStmt : Stmt {
  Expr *condition;
  ArrayRef<Stmt *> thenBody, elseBody;
  AST_NODE_FIELDS(IfStmt, condition, thenBody, elseBody)
};
/// Of a message: an expression in braces, or the text between two of them.
struct MessagePart {
  StringRef text;
  Expr *value; ///< Null: the text is shown as it is.
  AST_FIELDS(text, value)
};
/// `require H % KV == 0, "message with {H} and {H / KV}";`
struct RequireStmt : Stmt {
  Expr *condition;
  StringExpr *message; ///< Null: none.
  ArrayRef<MessagePart> messageParts;
  AST_NODE_FIELDS(RequireStmt, condition, message, messageParts)
};
/// `append(keys, k);`, the calls of a schedule, `forward(i);`, and of a strategy, `recompute_full(first = 2);`
struct ExprStmt : Stmt {
  Expr *value;
  AST_NODE_FIELDS(ExprStmt, value)
};

/// A clause of an op's body that is not `let` or `result =`:
///   whole e, u;  fold t carrying lse: f32[b, s] = e;  mask window(s, t, w);
///   flops = e;  bytes = e;  class = attention;  backward flops = e, recomputing e;
///   saves q, key;  saves lse: f32[b, s];  saves nothing;
///   linear x;  scan c;  routes b, s -> x, c by load if all;  updates c along t;  opaque;  stop_gradient;
struct OpClauseStmt : Stmt {
  enum class Clause : uint8_t {
    Whole,
    Fold,
    Mask,
    Flops,
    Bytes,
    FlopClass,
    Saves,
    BackwardFlops,
    Linear,
    Scan,
    Routes,
    Updates,
    Opaque,
    StopGradient
  };
  Clause clause;
  ArrayRef<Ident> names;      ///< whole, fold, saves, linear, scan; the left of routes; what is updated
  ArrayRef<Ident> names2;     ///< the right of routes; `along`
  ArrayRef<Expr *> arguments; ///< of the mask
  Ident word;                 ///< the mask's kind
  Ident extraName;            ///< `lse` of `saves lse: T` and of `carrying lse: T`
  TensorType *extraType = nullptr;
  Expr *value = nullptr;         ///< flops, bytes, class, backward flops; `by` of routes
  Expr *value2 = nullptr;        ///< recomputing; `if` of routes
  StringExpr *because = nullptr; ///< flops, backward flops: why the formula counts otherwise; null: not said
  Expr *formula = nullptr;       ///< of what is carried; null: not said
  AST_NODE_FIELDS(OpClauseStmt, clause, names, names2, arguments, word, extraName, extraType, value, value2, because,
                  formula)
};

//===----------------------------------------------------------------------===//
// Statements of strategies
//===----------------------------------------------------------------------===//

/// A pattern of paths as text without spaces, e.g. `layers[*].{x,h?}`, `param **`, `**.attention()`, and, after a
/// colon, names for the dims of what it matches.
struct Pattern {
  StringRef text;
  SMRange range;
  bool hasDims = false;
  bool dimsEllipsis = false; ///< `[..., i, o]`
  ArrayRef<Ident> dims;
  /// `i` of `layers[i].x`: what stands in the first brackets; empty without.
  StringRef getIndex() const { return text.contains('[') ? text.split('[').second.split(']').first : StringRef(); }
  AST_FIELDS(text, range, hasDims, dimsEllipsis, dims)
};
/// `mesh (pp, dp = 4, tp);` `mesh (pp, dp) = (pp, edp, ep);` `mesh (a, b) on topology (1, 0);`
struct MeshStmt : Stmt {
  struct AxisSyntax {
    Ident name;
    Expr *size; ///< Null: the strategy's parameter of that name.
    AST_FIELDS(name, size)
  };
  ArrayRef<AxisSyntax> axes;
  ArrayRef<Ident> second; ///< The other reading; empty: none.
  ArrayRef<Expr *> topology;
  AST_NODE_FIELDS(MeshStmt, axes, second, topology)
};
/// `axis dp = (edp, ep);`
struct AxisAliasStmt : Stmt {
  Ident name;
  AxisListSyntax axes;
  AST_NODE_FIELDS(AxisAliasStmt, name, axes)
};
/// `shard B over dp, (KV, G) over tp, F, V over tp;` One item per `over`-group and name or tuple of names.
struct ShardStmt : Stmt {
  struct Item {
    ArrayRef<Ident> dims;   ///< `F`, `MoE.E` or the members of a tuple. Qualified names keep their dot.
    ArrayRef<bool> mayLack; ///< For each dim: `F?`, no warning if the model has no such dim.
    AxisListSyntax axes;
    Expr *order; ///< `order mirrored`; null: blocked
    AST_FIELDS(dims, mayLack, axes, order)
  };
  ArrayRef<Item> items;
  AST_NODE_FIELDS(ShardStmt, items)
};
/// `keep gathered over tp;`
struct KeepStmt : Stmt {
  AxisListSyntax axes;
  AST_NODE_FIELDS(KeepStmt, axes)
};
/// `replicate **.norm, embed over tp;`
struct ReplicateStmt : Stmt {
  ArrayRef<Pattern> patterns;
  bool hasAxes; ///< Else all axes of the mesh are meant.
  AxisListSyntax axes;
  AST_NODE_FIELDS(ReplicateStmt, patterns, hasAxes, axes)
};
/// `ring t over cp;`
struct RingStmt : Stmt {
  Ident index;
  AxisListSyntax axes;
  ArrayRef<Stmt *> entries;
  AST_NODE_FIELDS(RingStmt, index, axes, entries)
};
/// `at PATTERN: rule;` `at PATTERN { rules }`. Rules are ShardStmt, KeepStmt, RingStmt, ReplicateStmt, RecomputeStmt,
/// OffloadStmt, OtherRuleStmt.
struct AtStmt : Stmt {
  Pattern pattern;
  ArrayRef<Stmt *> rules;
  AST_NODE_FIELDS(AtStmt, pattern, rules)
};
/// `pipeline layers over pp { schedule = one_f_one_b; split = [..]; place embed = first; }`
/// `pipeline (dense, experts) over pp { ... }`
struct PipelineStmt : Stmt {
  ArrayRef<Pattern> repeats;
  AxisListSyntax axes;
  ArrayRef<Stmt *> entries; ///< EntryStmt and PlaceStmt
  AST_NODE_FIELDS(PipelineStmt, repeats, axes, entries)
};
/// `name = value;`
struct EntryStmt : Stmt {
  Ident name;
  Expr *value;
  ArrayRef<StringRef> doc;
  AST_NODE_FIELDS(EntryStmt, name, value, doc)
};
/// `place gf, head = last;`
struct PlaceStmt : Stmt {
  ArrayRef<Ident> names;
  Ident where;
  AST_NODE_FIELDS(PlaceStmt, names, where)
};
/// `partition optimizer over (dp, cp);` `partition parameters over dp by unit A, B { prefetch = 1; }`
struct PartitionStmt : Stmt {
  Ident what;
  AxisListSyntax axes;
  ArrayRef<Pattern> units;
  ArrayRef<Stmt *> entries;
  AST_NODE_FIELDS(PartitionStmt, what, axes, units, entries)
};
/// `reduce gradients over (dp, cp) { bucket = 25MiB; type = bf16; }`
struct ReduceStmt : Stmt {
  Ident what;
  AxisListSyntax axes;
  ArrayRef<Stmt *> entries;
  AST_NODE_FIELDS(ReduceStmt, what, axes, entries)
};
/// `pad V to 128 * tp;`
struct PadStmt : Stmt {
  Ident dim;
  Expr *to; ///< A multiple of this.
  AST_NODE_FIELDS(PadStmt, dim, to)
};
/// What is said of values that forward keeps, or of how values are kept, perhaps in some layers only.
struct LayerRuleStmt : Stmt {
  ArrayRef<Pattern> patterns;
  Expr *condition; ///< Null: always.
  ArrayRef<Stmt *> entries;
};
/// `recompute layers[i].mlp, **.softmax() if i < 4 { whole = true; }`
struct RecomputeStmt : LayerRuleStmt {
  AST_NODE_FIELDS(RecomputeStmt, patterns, condition, entries)
};
/// `offload layers[*] to host after 2 { first = 4; }`
struct OffloadStmt : LayerRuleStmt {
  Ident where;
  Expr *after; ///< Null: 1.
  AST_NODE_FIELDS(OffloadStmt, patterns, condition, entries, where, after)
};
/// `quantize **.linear() as f8 by (1, 128) if fp8 { scales = f8; }`
struct QuantizeStmt : LayerRuleStmt {
  Expr *what;
  Expr *blocks; ///< Null: one scale for all.
  AST_NODE_FIELDS(QuantizeStmt, patterns, condition, entries, what, blocks)
};
/// `slow rank (pp = 1, tp = 0) by 1.2;`
struct SlowStmt : Stmt {
  AxisListSyntax axes;
  ArrayRef<Expr *> coordinates; ///< One per axis.
  Expr *by;
  AST_NODE_FIELDS(SlowStmt, axes, coordinates, by)
};
/// `overlap communication (dp, cp) with compute;`, `with products;`, `with gradients;` or `with nothing;`
struct OverlapStmt : Stmt {
  Ident what;
  AxisListSyntax axes;
  bool hasAxes; ///< Without `axes` it is about all.
  Ident with;
  AST_NODE_FIELDS(OverlapStmt, what, axes, hasAxes, with)
};
/// Rules that this compiler reads and does not lower yet: gather. Kept with their first
/// word so that each can be refused where it stands.
struct OtherRuleStmt : Stmt {
  Ident word;
  StringRef text; ///< As written, without the semicolon.
  AST_NODE_FIELDS(OtherRuleStmt, word, text)
};
/// `search { gpus = 1Ki; tp in powers(2, 1..9); require tp <= 8; objective = step; }`: values of parameters that are
/// worth trying, and, of a job, what the best plan has least or most of.
struct SearchStmt : Stmt {
  struct Values {
    Ident name;
    Expr *values; ///< A list or a range; the only value if `isOne`.
    bool isOne;   ///< `gpus = 1Ki`
    AST_FIELDS(name, values, isOne)
  };
  ArrayRef<Values> values;
  ArrayRef<Stmt *> requires_;
  AST_NODE_FIELDS(SearchStmt, values, requires_)
};

//===----------------------------------------------------------------------===//
// Statements of schedules
//===----------------------------------------------------------------------===//

/// `for i in a..b { }`
struct ForStmt : Stmt {
  Ident variable;
  Expr *begin, *end;
  ArrayRef<Stmt *> body;
  AST_NODE_FIELDS(ForStmt, variable, begin, end, body)
};
/// `virtual v at c * p + r;`
struct VirtualStmt : Stmt {
  Expr *count;
  Expr *place; ///< Over c and r: the virtual stage; null: c * p + r
  AST_NODE_FIELDS(VirtualStmt, count, place)
};
/// `fn chunk(k) = e;`
struct FnStmt : Stmt {
  Ident name;
  ArrayRef<Ident> params;
  Expr *value;
  AST_NODE_FIELDS(FnStmt, name, params, value)
};
/// `state m, v: f32;` of an optimizer.
struct StateStmt : Stmt {
  ArrayRef<Ident> names;
  Ident dtype;
  AST_NODE_FIELDS(StateStmt, names, dtype)
};
/// `"--ddp-bucket-size" = bucket / 4 if overlap;` `"--sequence-parallel" if sequence_parallel;` `"--swiglu" ignored;`
struct FlagStmt : Stmt {
  ArrayRef<StringExpr *> flags; ///< Several only if ignored.
  Expr *value;                  ///< Null: the flag has no value.
  Expr *condition;              ///< Null: always.
  ArrayRef<StringRef> doc;
  bool isIgnored() const { return !value && !condition; }
  AST_NODE_FIELDS(FlagStmt, flags, value, condition, doc)
};
/// `level spine extends rail { ranks = 16Ki; oversubscription = 2; }`
struct LevelStmt : Stmt {
  Ident name;
  Ident base;                    ///< Another level of the machine, if one is named.
  ArrayRef<EntryStmt *> entries; ///< Their names may have dots.
  ArrayRef<StringRef> doc;
  AST_NODE_FIELDS(LevelStmt, name, base, entries, doc)
};
/// `at **.gelu() { bytes = 2 * bytes(x); }` `fuse class elementwise;` `resident cublas at class contraction { bytes =
/// 32MiB; }` of a runtime.
struct KernelStmt : Stmt {
  bool isFusion;
  Ident resident; ///< Empty: no memory is declared.
  Ident opClass;  ///< Empty: ops are those of the pattern.
  Pattern pattern;
  ArrayRef<EntryStmt *> entries; ///< Names may be several words: `backward bytes`.
  ArrayRef<StringRef> doc;
  AST_NODE_FIELDS(KernelStmt, isFusion, resident, opClass, pattern, entries, doc)
};

//===----------------------------------------------------------------------===//
// Declarations
//===----------------------------------------------------------------------===//

struct Decl : Node {
  Ident name;
  ArrayRef<StringRef> doc; ///< `///` lines before it, without the slashes.
};
/// `op f(x: [..], rate: real = 0.1) -> [..] = formula { clauses }`
struct OpDecl : Decl {
  ArrayRef<Param> params;
  struct Result {
    Ident name; ///< Empty for a single unnamed result.
    TensorType *type;
    AST_FIELDS(name, type)
  };
  ArrayRef<Result> results;
  Expr *formula; ///< Null: given by `result =` in the body, or opaque. A TupleExpr for several results.
  /// LetStmt (`let` and `result = ...` / `z = ...` as Assign) and OpClauseStmt.
  ArrayRef<Stmt *> body;
  AST_NODE_FIELDS(OpDecl, name, doc, params, results, formula, body)
};
/// `fn f(n, s: real = 1) = e;`: of values that are known at compile time.
struct FnDecl : Decl {
  ArrayRef<Param> params;
  Expr *value;
  AST_NODE_FIELDS(FnDecl, name, doc, params, value)
};
/// Also `model`: a module that a job can run.
struct ModuleDecl : Decl {
  bool isModel;
  ArrayRef<Param> params;
  ArrayRef<TensorType *> results; ///< Empty for models.
  ArrayRef<Stmt *> body;
  AST_NODE_FIELDS(ModuleDecl, name, doc, isModel, params, results, body)
};
struct StrategyDecl : Decl {
  ArrayRef<Param> params; ///< Those that are forwarded last.
  ArrayRef<Stmt *> body;
  SMRange extends; ///< The first statement of `body` was written as `extends t(...)`; invalid: none was.
  AST_NODE_FIELDS(StrategyDecl, name, doc, params, body, extends)
};
struct ScheduleDecl : Decl {
  ArrayRef<Param> params;
  ArrayRef<Stmt *> body;
  AST_NODE_FIELDS(ScheduleDecl, name, doc, params, body)
};
/// `config gpt2 for GPT2 extends base { L = 12; }`
struct ConfigDecl : Decl {
  Ident model;
  Ident base;
  ArrayRef<EntryStmt *> entries;
  AST_NODE_FIELDS(ConfigDecl, name, doc, model, base, entries)
};
/// `job pretrain extends base { model = ...; search { ... } }`
struct JobDecl : Decl {
  Ident base;
  ArrayRef<EntryStmt *> entries;
  ArrayRef<SearchStmt *> searches; ///< One at most, once names are checked.
  AST_NODE_FIELDS(JobDecl, name, doc, base, entries, searches)
};
/// `precision bf16_mixed { weight = bf16; ... }`
struct PrecisionDecl : Decl {
  ArrayRef<EntryStmt *> entries;
  AST_NODE_FIELDS(PrecisionDecl, name, doc, entries)
};
/// `optimizer adamw(beta1: real = 0.9) { state m, v: f32; flops = 14 * volume; }`
struct OptimizerDecl : Decl {
  ArrayRef<Param> params;
  ArrayRef<Stmt *> body; ///< StateStmt, EntryStmt
  AST_NODE_FIELDS(OptimizerDecl, name, doc, params, body)
};

/// `launcher megatron_lm for megatron { "--tensor-model-parallel-size" = tp; }`: how a framework's arguments say what
/// parameters of a strategy say.
struct LauncherDecl : Decl {
  Ident strategy;
  ArrayRef<FlagStmt *> flags;
  AST_NODE_FIELDS(LauncherDecl, name, doc, strategy, flags)
};

/// `machine h100 extends base { memory.rate = 3.35TB/s; level node { ranks = 8; } }`: what a device and the network do.
struct MachineDecl : Decl {
  Ident base;
  ArrayRef<Stmt *> body; ///< EntryStmt, whose names have dots; LevelStmt
  AST_NODE_FIELDS(MachineDecl, name, doc, base, body)
};

/// `runtime eager extends base { launch = 8us; tax.collective = 0.30; }`: what software makes of a program on a
/// machine.
struct RuntimeDecl : Decl {
  Ident base;
  ArrayRef<Stmt *> body; ///< EntryStmt, whose names have dots; KernelStmt
  AST_NODE_FIELDS(RuntimeDecl, name, doc, base, body)
};

/// `import std.nn (linear, swiglu);`
struct Import {
  StringRef path; ///< "std.nn"
  SMRange range;
  bool all = true; ///< Without a list: every name.
  ArrayRef<Ident> names;
  AST_FIELDS(path, range, all, names)
};

struct File {
  StringRef path;          ///< Not listed below: parseFile
  unsigned bufferId;       ///< sets both.
  ArrayRef<StringRef> doc; ///< `//!` lines.
  ArrayRef<Import> imports;
  ArrayRef<Decl *> decls;
  AST_FIELDS(doc, imports, decls)
};

/// Calls `visit` with a node as an object of its own class.
template <typename Visit> void visitNode(const Node &node, Visit visit) {
  switch (node.kind) {
#define AST_NODE(KIND, category)                                                                                       \
  case NodeKind::KIND:                                                                                                 \
    return visit(static_cast<const KIND &>(node));
#include "stage/AST/Nodes.def"
  }
}

/// The parameters of a declaration; none of one that has none.
inline ArrayRef<Param> getParams(const Decl &decl) {
  ArrayRef<Param> params;
  visitNode(decl, [&](const auto &node) {
    if constexpr (requires { node.params.front().legal; })
      params = node.params;
  });
  return params;
}

/// Prints a file as .stg text again; printing what was parsed from it gives the same text.
void print(llvm::raw_ostream &os, const File &file);
void print(llvm::raw_ostream &os, const Expr *expr);
/// As .stg text on one line, for messages.
std::string textOf(const Expr *expr);
std::string textOf(const Stmt *stmt);
StringRef spell(BinaryOp op);

} // namespace stage::ast

#endif // STAGE_AST_AST_H
