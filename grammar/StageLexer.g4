// Tokens of .stg programs.
//
// Few words are reserved: those under "reserved words". The other words that the
// grammar knows, `model` or `first`, are names wherever a name may stand (rule `name`
// of the parser). Faulty text becomes a token of its own kind (BAD_NUMBER,
// BAD_QUANTITY, BAD_STRING, BAD_CHARACTER), so that it is reported in one place and with its
// extent. Comments stay on the hidden channel: documentation is taken from there.
lexer grammar StageLexer;

// Reserved words.
AS: 'as';
DIV: 'div';
ELSE: 'else';
FALSE: 'false';
FN: 'fn';
FOR: 'for';
IF: 'if';
IMPORT: 'import';
IN: 'in';
LET: 'let';
MODULE: 'module';
OP: 'op';
PARAM: 'param';
REPEAT: 'repeat';
REQUIRE: 'require';
RETURN: 'return';
TRUE: 'true';
VAR: 'var';
VIRTUAL: 'virtual';

// Words that are also names.
AFTER: 'after';
ALONG: 'along';
AT: 'at';
AXIS: 'axis';
BACKWARD: 'backward';
BECAUSE: 'because';
BUFFER: 'buffer';
BY: 'by';
CACHE: 'cache';
CARRYING: 'carrying';
CLASS: 'class';
CONFIG: 'config';
DIM: 'dim';
EXTENDS: 'extends';
FLOPS: 'flops';
FOLD: 'fold';
FUSE: 'fuse';
GATHER: 'gather';
GATHERED: 'gathered';
IGNORED: 'ignored';
INPUT: 'input';
JOB: 'job';
KEEP: 'keep';
LAST: 'last';
LAUNCHER: 'launcher';
LEVEL: 'level';
LINEAR: 'linear';
MACHINE: 'machine';
MASK: 'mask';
MESH: 'mesh';
MODEL: 'model';
NOTHING: 'nothing';
OFFLOAD: 'offload';
ON: 'on';
OPAQUE: 'opaque';
OPTIMIZER: 'optimizer';
ORDER: 'order';
OUTPUT: 'output';
OVER: 'over';
OVERLAP: 'overlap';
PAD: 'pad';
PARTIAL: 'partial';
PARTITION: 'partition';
PAST: 'past';
PIPELINE: 'pipeline';
PLACE: 'place';
PRECISION: 'precision';
QUANTIZE: 'quantize';
RANK: 'rank';
RECOMPUTE: 'recompute';
RECOMPUTING: 'recomputing';
REDUCE: 'reduce';
REPLICATE: 'replicate';
REPLICATED: 'replicated';
RESIDENT: 'resident';
RESULT: 'result';
RING: 'ring';
ROUTES: 'routes';
RUNTIME: 'runtime';
SAVES: 'saves';
SCAN: 'scan';
SCHEDULE: 'schedule';
SEARCH: 'search';
SHARD: 'shard';
SLOW: 'slow';
STATE: 'state';
STOP_GRADIENT: 'stop_gradient';
STRATEGY: 'strategy';
TO: 'to';
TOPOLOGY: 'topology';
UNIT: 'unit';
UPDATES: 'updates';
WHOLE: 'whole';
WITH: 'with';

NAME: LETTER (LETTER | DIGIT)*;

// `0..L` is a number, two dots and a name: a fraction needs a digit after its point.
NUMBER
  : DIGITS UNIT_SUFFIX?
  | DIGITS ('.' DIGITS)? EXPONENT
  | DIGITS '.' DIGITS
  ;
// An amount with its unit is one token. A division of amounts has blanks: `80GB / tp`.
QUANTITY: AMOUNT ('/' TIME_UNIT)?;
BAD_QUANTITY: AMOUNT '/' LETTER (LETTER | DIGIT)*;
BAD_NUMBER: DIGIT (LETTER | DIGIT)* ('.' DIGIT (LETTER | DIGIT)*)*;
STRING: '"' ~["\r\n]* '"';
BAD_STRING: '"' ~["\r\n]*;

LPAREN: '(';
RPAREN: ')';
LBRACKET: '[';
RBRACKET: ']';
LBRACE: '{';
RBRACE: '}';
COMMA: ',';
SEMICOLON: ';';
COLON: ':';
AT_SIGN: '@';
ARROW: '->';
ELLIPSIS: '...';
DOTS: '..';
DOT: '.';
STAR_STAR: '**';
STAR: '*';
SLASH: '/';
PERCENT: '%';
PLUS: '+';
MINUS: '-';
EQUAL: '==';
NOT_EQUAL: '!=';
LESS_EQUAL: '<=';
GREATER_EQUAL: '>=';
LESS: '<';
GREATER: '>';
AND: '&&';
OR: '||';
NOT: '!';
QUESTION: '?';
ASSIGN: '=';

// `////` begins an ordinary comment.
DOC_COMMENT: '///' (~[/\r\n] ~[\r\n]*)? -> channel(HIDDEN);
FILE_DOC: '//!' ~[\r\n]* -> channel(HIDDEN);
COMMENT: '//' ~[\r\n]* -> channel(HIDDEN);
SPACE: [ \t\r\n]+ -> skip;
BAD_CHARACTER: .;

fragment LETTER: [A-Za-z_];
fragment DIGIT: [0-9];
fragment DIGITS: DIGIT+ ('_' DIGIT+)*;
fragment EXPONENT: [eE] [+-]? DIGIT+;
fragment UNIT_SUFFIX: [KMG] 'i';
fragment AMOUNT: DIGITS ('.' DIGITS)? EXPONENT? (TIME_UNIT | [KMGTP] 'iB' | [kKMGTPE]? ('B' | 'bit' | 'FLOP' | 'W' | 'USD'));
fragment TIME_UNIT: [pnum]? 's' | 'min' | 'h';
