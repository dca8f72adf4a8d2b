// The syntax of .stg programs. docs/language says what each construct means.
//
// The grammar is unambiguous, which a test keeps: whatever could be read in two ways
// is one alternative here and told apart when the tree is built (`(c * q)` in a shape,
// `sum[d](x)`, `flops = e`, `a < b < c`). Every list may end in a comma. Where expressions
// nest, the next two tokens decide: looking further at every level would cost a square.
parser grammar StageParser;
options { tokenVocab = StageLexer; }

file: importDecl* declaration* EOF;
/// The value of `-D name=value`.
singleExpr: rangeOrExpr (WITH expr)* EOF;

importDecl: IMPORT name (DOT name)* (LPAREN nameList RPAREN)? SEMICOLON;
declaration
  : opDecl
  | moduleDecl
  | modelDecl
  | strategyDecl
  | scheduleDecl
  | configDecl
  | jobDecl
  | precisionDecl
  | optimizerDecl
  | fnDecl
  | launcherDecl
  | machineDecl
  | runtimeDecl
  ;

// Declarations.

opDecl: OP name LPAREN paramList? RPAREN (ARROW opResults)? (ASSIGN expr)? (LBRACE opStmt* RBRACE | SEMICOLON);
opResults: type | LPAREN opResult (COMMA opResult)* COMMA? RPAREN;
opResult: (name COLON)? type;
moduleDecl: MODULE name LPAREN paramList? RPAREN ARROW moduleResults block;
moduleResults: type | LPAREN type (COMMA type)* COMMA? RPAREN;
modelDecl: MODEL name LPAREN paramList? RPAREN block;
strategyDecl: STRATEGY name LPAREN own=paramList? (SEMICOLON forwarded=paramList?)? RPAREN
              (EXTENDS name (LPAREN argList? RPAREN)?)? strategyBlock;
scheduleDecl: SCHEDULE name LPAREN paramList? RPAREN scheduleBlock;
configDecl: CONFIG name FOR name (EXTENDS name)? entryBlock;
jobDecl: JOB name (EXTENDS name)? LBRACE (entry | searchSpace)* RBRACE;
precisionDecl: PRECISION name entryBlock;
optimizerDecl: OPTIMIZER name (LPAREN paramList? RPAREN)? LBRACE (stateStmt | entry)* RBRACE;

launcherDecl: LAUNCHER name FOR name LBRACE launcherEntry* RBRACE;
launcherEntry
  : STRING ASSIGN value=expr (IF condition=expr)? SEMICOLON
  | STRING IF condition=expr SEMICOLON
  | STRING (COMMA STRING)* COMMA? IGNORED SEMICOLON
  ;

machineDecl: MACHINE name (EXTENDS name)? LBRACE machineStmt* RBRACE;
machineStmt: dottedEntry | level;
/// A level has the entries of another one that it does not replace.
level: LEVEL name (EXTENDS name)? LBRACE dottedEntry* RBRACE;
runtimeDecl: RUNTIME name (EXTENDS name)? LBRACE runtimeStmt* RBRACE;
runtimeStmt
  : dottedEntry
  | AT kernels LBRACE kernelEntry* RBRACE
  | FUSE kernels SEMICOLON
  | RESIDENT name AT kernels LBRACE kernelEntry* RBRACE
  ;
kernels: CLASS name | pattern;
/// `backward bytes = 5 * bytes(x);`
kernelEntry: name+ ASSIGN expr SEMICOLON;
dottedEntry: qualifiedName ASSIGN expr SEMICOLON;

fnDecl: FN name LPAREN paramList? RPAREN ASSIGN expr SEMICOLON;

paramList: parameter (COMMA parameter)* COMMA?;
/// `in` names its legal values: a list, or a range.
parameter: name (COLON (type | scalarKind))? (IN rangeOrExpr)? (ASSIGN expr)?;
scalarKind: name name?;

entryBlock: LBRACE entry* RBRACE;
/// `strategy = a(...) with b(...);` adds parts to a strategy.
entry: name ASSIGN expr (WITH expr)* SEMICOLON;
stateStmt: STATE nameList COLON name SEMICOLON;

// Types.

type: name? LBRACKET (dim (COMMA dim)* COMMA?)? RBRACKET (PARTIAL LPAREN nameList RPAREN)? (REPLICATED axisList)?;
dim: (name COLON)? expr (AT_SIGN axisList)? | compound (AT_SIGN axisList)? | ellipsis;
compound: LPAREN name name+ RPAREN;
ellipsis: ELLIPSIS name?;
axisList: name | LPAREN nameList? RPAREN;
nameList: name (COMMA name)* COMMA?;
indexList: indexItem (COMMA indexItem)* COMMA?;
indexItem: expr (COLON expr)? | compound (COLON expr)? | ellipsis;

// Statements of modules and models.

block: LBRACE stmt* RBRACE;
stmt
  : tensorDecl
  | dimStmt
  | letStmt
  | assignStmt
  | returnStmt
  | outputStmt
  | repeatStmt
  | ifStmt
  | requireStmt
  | callStmt
  ;
tensorDecl: ((PARAM | INPUT | BUFFER) nameList COLON type | CACHE nameList COLON type ((LAST | PAST) expr)?) SEMICOLON;
dimStmt: DIM nameList (ASSIGN expr)? SEMICOLON;
letStmt: (LET | VAR) (name (LBRACKET indexList? RBRACKET)? | LPAREN nameList RPAREN) (COLON type)? ASSIGN expr SEMICOLON;
assignStmt: name ASSIGN expr SEMICOLON;
returnStmt: RETURN (LBRACKET indexList? RBRACKET ASSIGN)? expr SEMICOLON;
outputStmt: OUTPUT expr SEMICOLON;
repeatStmt: REPEAT name LBRACKET (name IN)? rangeOrExpr RBRACKET block;
ifStmt: IF expr block (ELSE IF expr block)* (ELSE block)?;
requireStmt: REQUIRE expr (COMMA STRING)? SEMICOLON;
/// `output (x);` is an output: what is called `output` is called in expressions.
callStmt: callee (DOT name)* LPAREN argList? RPAREN SEMICOLON;
callee: NOTHING | nameNotOutput;

// Clauses of ops.

opStmt
  : letStmt                                                    # opLet
  | name ASSIGN expr (BECAUSE STRING)? SEMICOLON               # opAssign
  | BACKWARD FLOPS ASSIGN expr (COMMA RECOMPUTING expr)? (BECAUSE STRING)? SEMICOLON # opBackward
  | WHOLE nameList SEMICOLON                                   # opWhole
  | FOLD nameList (CARRYING name COLON type (ASSIGN expr)?)? SEMICOLON # opFold
  | MASK name LPAREN exprList? RPAREN SEMICOLON                # opMask
  | SAVES NOTHING SEMICOLON                                    # opSavesNothing
  | SAVES savedNames SEMICOLON                                 # opSaves
  | SAVES name COLON type SEMICOLON                            # opSavesTensor
  | LINEAR nameList SEMICOLON                                  # opLinear
  | SCAN nameList SEMICOLON                                    # opScan
  | ROUTES nameList ARROW nameList (BY expr (IF expr)?)? SEMICOLON # opRoutes
  | UPDATES nameList ALONG name SEMICOLON                      # opUpdates
  | OPAQUE SEMICOLON                                           # opOpaque
  | STOP_GRADIENT SEMICOLON                                    # opStopGradient
  ;
savedNames: nameNotNothing (COMMA name)* COMMA?;

// Rules of strategies.

strategyBlock: LBRACE strategyStmt* RBRACE;
strategyStmt
  : MESH LPAREN meshAxis (COMMA meshAxis)* COMMA? RPAREN (ASSIGN LPAREN nameList RPAREN)?
    (ON TOPOLOGY LPAREN exprList RPAREN)? SEMICOLON            # meshStmt
  | AXIS name ASSIGN axisList SEMICOLON                        # axisStmt
  | AT pattern (COLON strategyRule | LBRACE strategyRule* RBRACE)              # atStmt
  | PIPELINE (pattern | LPAREN patternList RPAREN) OVER axisList (LBRACE pipelineEntry* RBRACE | SEMICOLON) # pipelineStmt
  | PARTITION name OVER axisList (BY UNIT patternList)? (entryBlock | SEMICOLON) # partitionStmt
  | REDUCE name OVER axisList (entryBlock | SEMICOLON)         # reduceStmt
  | PAD qualifiedName TO expr SEMICOLON                        # padStmt
  | SLOW RANK LPAREN rankCoordinate (COMMA rankCoordinate)* COMMA? RPAREN BY expr SEMICOLON # slowStmt
  | strategyRule                                                       # ruleStmt
  | partName LPAREN argList? RPAREN SEMICOLON                  # partStmt
  | searchSpace                                                # searchBlock
  | letStmt                                                    # strategyLet
  | requireStmt                                                # strategyRequire
  | IF expr strategyBlock (ELSE IF expr strategyBlock)* (ELSE strategyBlock)? # strategyIf
  ;
/// `mesh (a, b);` is a mesh.
partName: NOTHING | OUTPUT | nameNotMesh;
searchSpace: SEARCH LBRACE searchStmt* RBRACE;
/// `gpus = 1Ki;` has one value, `objective = step;` is what the best plan has least or most of.
searchStmt: name (IN rangeOrExpr | ASSIGN expr) SEMICOLON | requireStmt;
strategyRule: shardRule | keepRule | otherRule;
shardRule: SHARD shardGroup (COMMA shardGroup)* COMMA? SEMICOLON;
keepRule: KEEP GATHERED OVER axisList SEMICOLON;
shardGroup: shardTarget (COMMA shardTarget)* OVER axisList (ORDER expr)?;
shardTarget: shardDim | LPAREN shardDim (COMMA shardDim)* COMMA? RPAREN;
shardDim: qualifiedName QUESTION?;
otherRule
  : RECOMPUTE patternList (IF expr)? (entryBlock | SEMICOLON)
  | OFFLOAD patternList TO name (AFTER after=expr)? (IF expr)? (entryBlock | SEMICOLON)
  | QUANTIZE patternList AS what=expr (BY blocks=expr)? (IF expr)? (entryBlock | SEMICOLON)
  | GATHER nameList OVER axisList SEMICOLON
  | RING name OVER axisList (entryBlock | SEMICOLON)
  | OVERLAP name axisList? WITH name SEMICOLON
  | REPLICATE patternList (OVER axisList)? SEMICOLON
  ;
meshAxis: name (ASSIGN expr)?;
rankCoordinate: name ASSIGN expr;
pipelineEntry: entry | PLACE nameList ASSIGN name SEMICOLON;
qualifiedName: name (DOT name)*;
exprList: expr (COMMA expr)* COMMA?;

patternList: pattern (COMMA pattern)* COMMA?;
pattern: (PARAM | RESULT)? path QUESTION? (COLON patternDims)?;
patternDims: LBRACKET (ELLIPSIS (COMMA nameList?)? | nameList)? RBRACKET;
path: pathSegment (DOT pathSegment)*;
pathSegment
  : STAR_STAR
  | pathName
  | LBRACE alternative (COMMA alternative)* COMMA? RBRACE (LPAREN RPAREN)?
  ;
alternative: pathName QUESTION?;
pathName: glob (LBRACKET (STAR | rangeOrExpr) RBRACKET)* (LPAREN RPAREN)?;
glob: OP | NUMBER | (STAR | name) | name STAR name? | STAR name STAR?;

// Statements of schedules.

scheduleBlock: LBRACE scheduleStmt* RBRACE;
scheduleStmt
  : letStmt                                                    # scheduleLet
  | requireStmt                                                # scheduleRequire
  | callStmt                                                   # scheduleCall
  | FOR name IN expr DOTS expr scheduleBlock                   # scheduleFor
  | IF expr scheduleBlock (ELSE IF expr scheduleBlock)* (ELSE scheduleBlock)? # scheduleIf
  | VIRTUAL expr (AT expr)? SEMICOLON                          # scheduleVirtual
  | FN name LPAREN nameList? RPAREN ASSIGN expr SEMICOLON      # scheduleFn
  ;

// Expressions, the tightest first.

expr
  : expr LPAREN argList? RPAREN (AS name)?                     # callExpr
  | expr LBRACKET subscript (COMMA subscript)* COMMA? RBRACKET # indexExpr
  | expr DOT name                                              # memberExpr
  | (MINUS | NOT) expr                                         # unaryExpr
  | expr (STAR | SLASH | PERCENT | DIV) expr                   # binaryExpr
  | expr (PLUS | MINUS) expr                                   # binaryExpr
  | expr (LESS | LESS_EQUAL | GREATER | GREATER_EQUAL | EQUAL | NOT_EQUAL) expr # binaryExpr
  | expr AND expr                                              # binaryExpr
  | expr OR expr                                               # binaryExpr
  | NUMBER                                                     # numberExpr
  | QUANTITY                                                   # quantityExpr
  | STRING                                                     # stringExpr
  | (TRUE | FALSE)                                             # boolExpr
  | name                                                       # nameExpr
  | LPAREN expr (COMMA exprList?)? RPAREN                      # parenExpr
  | LBRACKET (rangeOrExpr (FOR name IN rangeOrExpr | (COMMA rangeOrExpr)* COMMA?))? RBRACKET # listExpr
  | IF expr LBRACE expr RBRACE (ELSE IF expr LBRACE expr RBRACE)* ELSE LBRACE expr RBRACE # ifExpr
  | OP LPAREN operand (COMMA operand)* COMMA? RPAREN ARROW moduleResults (ASSIGN LPAREN expr RPAREN)? # opExpr
  ;
operand: expr COLON type;
rangeOrExpr: expr (DOTS expr)?;
subscript: rangeOrExpr | compound | ellipsis;
argList: arg (COMMA arg)* COMMA?;
arg: (name ASSIGN)? rangeOrExpr | FOR name IN rangeOrExpr;

name: NOTHING | nameNotNothing;
nameNotNothing: OUTPUT | nameNotOutput;
nameNotOutput: MESH | nameNotMesh;
nameNotMesh
  : NAME | AFTER | ALONG | AT | AXIS | BACKWARD | BECAUSE | BUFFER | BY | CACHE | CARRYING | CLASS | CONFIG | DIM | EXTENDS
  | FLOPS | FOLD | FUSE | GATHER | GATHERED | IGNORED | INPUT | JOB | KEEP | LAST | LAUNCHER | LEVEL | LINEAR | MACHINE | MASK | MODEL | OFFLOAD | ON | OPAQUE | OPTIMIZER | ORDER
  | OVER | OVERLAP | PAD | PARTIAL | PARTITION | PAST | PIPELINE | PLACE | PRECISION | QUANTIZE | RANK | RECOMPUTE | RECOMPUTING
  | REDUCE | REPLICATE | REPLICATED | RESIDENT | RESULT | RING | ROUTES | RUNTIME | SAVES | SCAN | SCHEDULE | SEARCH | SHARD | SLOW | STATE
  | STOP_GRADIENT | STRATEGY | TO | TOPOLOGY | UNIT | UPDATES | WHOLE | WITH
  ;
