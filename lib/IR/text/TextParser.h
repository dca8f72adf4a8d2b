//===- TextParser.h - reader of the IR text --------------------*- C++ -*-===//
//
// Recursive descent, one method per phrase of docs/internals/IRRef.md. A method returns false
// (or null) after it has reported why; the caller gives up its own phrase, and the
// statement in which that happened is skipped, so that one mistake costs one message.
// Values of a skipped statement count as defined: their uses are skipped silently.
//
// One class in five files: ParseTypes (names, sizes, types, shardings), ParseOpDef,
// ParseFormula, ParseOps (blocks), ParseGraph (all else).
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_IR_TEXTPARSER_H
#define STAGE_LIB_IR_TEXTPARSER_H

#include "TextLexer.h"
#include "stage/IR/graph/Rule.h"
#include "stage/IR/text/Text.h"
#include "stage/Support/Limits.h"

namespace stage {

class TextParser {
public:
  TextParser(Graph &graph, DiagnosticEngine &diags, llvm::StringRef text)
      : graph(graph), diags(diags), lexer(text), token(lexer.next()) {}

  bool parseGraph();
  /// Behind a graph. `token` is what stands there.
  bool isAt(llvm::StringRef word) const { return is(word); }
  llvm::StringRef getRest() const { return lexer.getBuffer().drop_front(token.text.data() - lexer.getBuffer().data()); }
  bool parseEnd() { return token.kind == Token::End || fail("the end of the file"); }
  /// `Encoder %y`: a value of a part of a workload.
  struct TransferEnd {
    std::string part;
    Token name, value;
  };
  /// `transfer Encoder %y to Decoder %x;`
  bool parseTransfer(TransferEnd &from, TransferEnd &to);
  /// By its name in the text, with the `%`; null if there is none.
  Value *findValue(const Token &name) const { return values.lookup(name.text.drop_front()); }

private:
  /// Nesting of brackets in sizes and formulas that is accepted.
  static constexpr unsigned maxNesting = 200;
  /// Streams of a graph: more than any machine has.
  static constexpr unsigned maxStreams = 64;
  /// Entries of a table.
  static constexpr int64_t maxEntries = 1 << 20;

  //===--- Tokens ---------------------------------------------------------===//

  void advance() { token = lexer.next(); }
  bool is(llvm::StringRef text) const { return token.is(text); }
  bool parseTransferEnd(TransferEnd &end);
  bool consume(llvm::StringRef text);
  /// Reports what was expected and what stands here instead. Always false.
  bool fail(const llvm::Twine &expected);
  bool expect(llvm::StringRef text);
  /// `( a, b, ... )` with any brackets; a trailing comma is not printed and not read.
  bool parseList(llvm::StringRef open, llvm::StringRef close, llvm::function_ref<bool()> parseElement);
  /// Goes behind the broken statement that begins at `start`: behind its `;` or its body, or to the `}` that ends the
  /// block.
  void skipStatement(const Token &start);

  //===--- Names, sizes, types (ParseTypes.cpp) -----------------------------===//

  bool parseIdentifier(std::string &name, llvm::StringRef what);
  bool parseQuoted(std::string &text, llvm::StringRef what);
  /// An identifier or a string.
  bool parseName(std::string &name, llvm::StringRef what);
  bool parseInteger(int64_t &value, int64_t least);
  bool parseUnsigned(unsigned &value);
  bool parseNumber(double &value);
  /// Reads up to a `,`, a closing bracket, a `;` or one of `stops`.
  bool parseSize(Size &size, llvm::ArrayRef<llvm::StringRef> stops = {});
  bool parseDType(DType &type);
  bool parseReduceKind(ReduceKind &kind);
  /// `tp`, `cp mirrored`, `ep by load`, appended; a group of axes is several.
  bool parseAxis(AxisList &axes);
  bool isTable();
  bool parseBlockLengths(unsigned &number);
  /// `tp`, `(cp, tp)`, `()`. With `open`: sets it if the list ends in `...`.
  bool parseAxes(AxisList &axes, bool *open = nullptr);
  /// `(tp, cp)` or, with `reduce`, `(max, tp)`.
  bool parseAxisSet(AxisSet &axes, ReduceKind *reduce);
  bool parseExtent(Extent &extent, llvm::ArrayRef<llvm::StringRef> stops = {});
  bool parseType(TensorType &type);
  /// `f8 by (1, _, 128) with f32`
  bool parseQuantization(Quantization &quantization, std::optional<DType> &type);
  bool parseHowKept(TensorType &type);
  bool parseMemorySpace(MemorySpace &space);
  bool parseSharding(Sharding &sharding);
  bool parseConstraint(Constraint &constraint);
  bool parseConstraintDim(Constraint &constraint);

  //===--- Operators (ParseOpDef.cpp) ---------------------------------------===//

  bool parseOpDef();
  bool parseIndexNames(OpDef &def, llvm::SmallVectorImpl<unsigned> &indices, bool declare);
  std::optional<unsigned> parseIndexName(OpDef &def, bool declare);
  std::optional<unsigned> parseCompound(OpDef &def, bool declare);
  bool parseResult(OpDef &def, Token &formula);
  bool parseVjp(OpDef &def);
  bool checkVjp(const OpDef &def);
  bool parseClause(OpDef &def);
  bool parseRouting(OpDef &def);
  bool parseSaves(OpDef &def);
  /// Moves behind a formula that can be read only later.
  void skipFormula();

  //===--- Formulas (ParseFormula.cpp) --------------------------------------===//

  /// A formula whose operators bind at least as tightly as `strength` (0: any).
  const Formula *parseFormula(OpDef &def, unsigned strength = 0);
  const Formula *parseUnary(OpDef &def);
  const Formula *parsePrimary(OpDef &def);
  const Formula *parseReduction(OpDef &def);
  const Formula *parseElement(OpDef &def, unsigned operand);
  const Formula *parseCall(OpDef &def);
  bool parseArguments(OpDef &def, llvm::StringRef open, llvm::StringRef close,
                      llvm::SmallVectorImpl<const Formula *> &arguments);
  /// True at `sum[...](`, as against `sum[...]` of an operand that is called so.
  bool isReduction();
  bool isCompound();

  //===--- Graph (ParseGraph.cpp) -------------------------------------------===//

  bool parseItem();
  bool parsePasses();
  bool parseDim();
  bool parseMesh();
  bool parseTopology();
  bool parseAxisGroup();
  bool parseBindings();
  bool parseTable();
  bool parseSlotLoad();
  bool parseEntries(llvm::StringRef table, llvm::ArrayRef<int64_t> dims, std::vector<int64_t> &entries);
  bool parsePrecision();
  bool parseOptimizer();
  bool parseReduction(Rule &rule);
  bool parseCases(Rule &rule);
  bool parseObligation();
  bool parseRule();
  bool parseSlowRanks();
  bool parseSum();
  std::optional<PathPattern> parsePattern();
  bool parsePipeline();
  bool parseStream();
  bool parseUnitList();

  //===--- Blocks (ParseOps.cpp) --------------------------------------------===//

  /// A result or block argument: `%q "layers.attn.q"`.
  struct Definition {
    Token name;
    std::string path;
  };

  bool parseTopBlock(Block &block);
  bool parseBlock(Block &block);
  bool parseOp(Block &block);
  bool parseDefinition(Definition &definition);
  void define(const Definition &definition, Value *value);
  bool parseValue(Value *&value);
  bool parseOperand(Op &op);
  bool parseOperands(Op &op);
  bool parseOpBody(Op &op, llvm::ArrayRef<Definition> results);
  bool parseReshard(Op &op);
  bool parseDims(Op &op);
  bool parseRepeatHead(Op &op);
  bool parseCases(Op &op);
  bool parseArguments(Op &op, Block &body);
  bool parseBodies(Op &op);
  bool parseIndices(Op &op);
  bool parseFacts(Value &value);
  bool parseResults(Op &op, llvm::ArrayRef<Definition> definitions);
  bool parseOrigin(Op &op);
  bool parsePlace(Op &op);
  bool parseOrder(Op &op);
  bool resolveEdges();

  Graph &graph;
  DiagnosticEngine &diags;
  TextLexer lexer;
  Token token;
  /// Values by name without `%`; null if the statement that defines it is broken.
  llvm::StringMap<Value *> values;
  /// Operands and lets by name, of the operator that is being read.
  llvm::StringMap<unsigned> operandNumbers, letNumbers;
  /// Arguments of the repeat whose head is being read.
  llvm::SmallVector<Definition, 4> argumentDefinitions;
  /// What ops wait for, by name.
  struct PendingEdge {
    Op *op;
    Token name;
    OrderEdge edge;
  };
  std::vector<PendingEdge> pendingEdges;
  /// What the text says of indices of the compute op being read; sizes are null where it says nothing.
  llvm::SmallVector<Extent, 6> writtenExtents;
  unsigned depth = 0;
};

} // namespace stage

#endif // STAGE_LIB_IR_TEXTPARSER_H
