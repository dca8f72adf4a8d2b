//===- LaunchersTest.cpp - arguments of a framework, both ways ------------===//
//
// Expected flags and values are written by hand from the declaration of the launcher, which stands below.
//
//===----------------------------------------------------------------------===//
#include "stage/Sema/Launchers.h"
#include "stage/Symbolic/Size.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"

using namespace stage;

namespace {
constexpr const char *source = R"(
import std.launchers;
schedule gpipe(p, m, r) { for i in 0..m { forward(i); } for i in 0..m { backward(i); } }
strategy plan(
  pp = 1, dp = 1, tp in powers(2, 1..17) = 1, sequence_parallel: bool = true, zero in [0, 1, 2, 3] = 0,
  recompute in [none, selective, full] = none, bucket: bytes = none, group: size = none, wait: time = 0s,
  order: schedule = gpipe, ring: bool = false, reduce_type: type = none, tokens: size = 8, width = 128 * tp,
) {
  mesh (pp, dp, tp);
  require sequence_parallel || zero + group + tokens > 0 || wait > 0s || ring || width > 0;
  require recompute == none || bucket == none || order == gpipe || reduce_type == none;
}
launcher l for plan {
  "--pp" = pp;
  "--tp" = tp;
  "--sp" if sequence_parallel;
  "--shard" if zero >= 1;
  "--recompute" = recompute if recompute != none;
  "--bucket" = bucket / 4B if bucket != none;
  "--group" = group if group != none;
  "--wait" = wait / 1ms;
  "--order" = order;
  "--comm=gather" if !ring;
  "--comm=p2p" ignored;
  "--reduce=bf16" if reduce_type == bf16;
  "--reduce=fp32" if reduce_type == f32;
  "--kilotokens" = tokens / 1000;
  "--bf16", "--lr" ignored;
}
launcher modes for plan {
  "--full" if recompute == full;
  "--selective" if recompute == selective;
  "--ring" if ring;
  "--no-ring" if !ring;
  "--level" = zero if zero >= 0;
  "--tp-of-2" = tp * 2;
}
launcher keys for plan {
  "parallel.tp" = tp;
  "comm.ring" = ring;
  "model.mode" ignored;
}
)";

class Launchers : public testing::Test {
protected:
  Launchers()
      : diags(sources, os), program(ast, diags, {STAGE_STDLIB, {}}), evaluator(program, sizes, binding, owed, diags) {
    unsigned buffer = sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBuffer(source, "main.stg"), llvm::SMLoc());
    program.loadBuffer(buffer, "main.stg");
    EXPECT_TRUE(program.getMain()) << os.str();
  }

  sema::Launcher get(llvm::StringRef name) {
    auto *decl = llvm::dyn_cast_or_null<ast::LauncherDecl>(program.lookup(*program.getMain(), name));
    std::optional<sema::Launcher> launcher = decl ? sema::Launcher::make(program, *decl) : std::nullopt;
    EXPECT_TRUE(launcher) << os.str();
    return *launcher;
  }

  static std::vector<std::string> split(llvm::StringRef words) {
    llvm::SmallVector<llvm::StringRef, 16> parts;
    words.split(parts, ' ', -1, /*KeepEmpty=*/false);
    return std::vector<std::string>(parts.begin(), parts.end());
  }

  /// `tp = 8, zero = 1`, or the message.
  std::string read(llvm::StringRef words, llvm::StringRef name = "l") {
    messages.clear();
    auto arguments = get(name).read(evaluator, split(words));
    if (!arguments)
      return os.str();
    std::string text;
    for (const sema::NamedValue &argument : *arguments)
      text += (text.empty() ? "" : ", ") + argument.name.name.str() + " = " +
              (argument.value.isNone() ? "none" : evaluator.format(argument.value));
    return text;
  }

  std::string write(std::vector<sema::NamedValue> arguments, llvm::StringRef name = "l",
                    llvm::ArrayRef<llvm::StringRef> elsewhere = {}) {
    messages.clear();
    auto words = get(name).write(evaluator, arguments, elsewhere);
    return words ? llvm::join(*words, " ") : os.str();
  }
  /// What reading gives, written.
  std::string writeBack(llvm::StringRef words, llvm::StringRef name = "l") {
    auto arguments = get(name).read(evaluator, split(words));
    return arguments ? write(*arguments, name) : os.str();
  }

  static sema::NamedValue give(llvm::StringRef name, sema::CTValue value) {
    return {{name, SMRange()}, std::move(value), SMRange()};
  }
  static sema::NamedValue give(llvm::StringRef name, int64_t value) {
    return give(name, sema::CTValue::integer(value));
  }
  sema::CTValue bytes(int64_t count) { return sema::CTValue::quantity(sizes.constant(count), Dimension::ofBytes()); }

  static void expectPart(const std::string &text, const char *part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }

  std::string messages;
  llvm::raw_string_ostream os{messages};
  llvm::SourceMgr sources;
  DiagnosticEngine diags;
  ast::ASTContext ast;
  sema::Program program;
  SizeContext sizes;
  SizeBinding binding;
  Obligations owed;
  sema::Evaluator evaluator;
};
} // namespace

// Numbers, words, bytes, times and declarations; a flag that is absent says what its condition says.
TEST_F(Launchers, Read) {
  EXPECT_EQ(read("--sp --comm=gather"), "");
  EXPECT_EQ(read("--tp 8 --pp=2 --sp --comm gather"), "pp = 2, tp = 8");
  EXPECT_EQ(read(""), "sequence_parallel = false, ring = true");
  EXPECT_EQ(read("--sp --shard --recompute selective"), "zero = 1, recompute = selective, ring = true");
  EXPECT_EQ(read("--sp --comm=gather --bucket 10 --group 4 --wait 3"), "bucket = 40B, group = 4, wait = 3ms");
  EXPECT_EQ(read("--sp --comm=gather --order gpipe --reduce bf16"), "order = gpipe, reduce_type = bf16");
  EXPECT_EQ(read("--sp --comm=gather --kilotokens 4"), "tokens = 4000");
}

TEST_F(Launchers, ReadIgnored) {
  EXPECT_EQ(read("--sp --bf16 --lr 3e-4 --comm=gather"), "");
  EXPECT_EQ(read("--lr=3e-4 --sp --comm p2p --bf16"), "ring = true");
  // Keys without dashes.
  EXPECT_EQ(read("model.mode train parallel.tp 4 comm.ring true", "keys"), "tp = 4, ring = true");
}

TEST_F(Launchers, ReadFaults) {
  expectPart(read("--sp --tpx 8 --comm=gather"), "launcher 'l' has no flag '--tpx'");
  expectPart(os.str(), "[unknown-flag]");
  expectPart(os.str(), "did you mean '--tp'?");
  EXPECT_EQ(os.str().find("'8'"), std::string::npos) << os.str();
  expectPart(read("--sp 8"),
             "'8' is no flag of launcher 'l', and no flag before it takes a value; leave it out [unknown-flag]");
  expectPart(read("--tp --sp"), "'--tp' needs a value; write '--tp VALUE' [flag-value]");
  expectPart(read("--sp=yes"), "'--sp' takes no value, found 'yes'; write '--sp' alone [flag-value]");
  expectPart(read("--tp eight --sp"), "the value of '--tp' is one of 1, 2, 4, 8, 16, found 'eight'");
  expectPart(read("--tp 3 --sp"), "'tp' is one of [1, 2, 4, 8, 16], found 3 [value-not-legal]");
  expectPart(read("--bucket x --sp"), "the value of '--bucket' is a whole number of at least 0, found 'x'");
  expectPart(read("--tp 2 --tp 4"), "'--tp' is given twice; leave one of them out [flag-given-twice]");
  expectPart(read("--comm=a2a"), "the value of '--comm' is one of gather, p2p, found 'a2a'");
  expectPart(read("--comm"), "the value of '--comm' is one of gather, p2p, found none");
  expectPart(read("--recompute none --sp"),
             "'--recompute none' contradicts launcher 'l', which writes this flag if recompute != none; leave it out "
             "[flags-contradict]");
  expectPart(read("--reduce=bf16 --reduce=fp32"), "'--reduce' is given twice");
  // Both faults are found.
  expectPart(read("--pp x --wait y --order z"), "the value of '--pp' is a whole number of at least 0, found 'x'");
  expectPart(os.str(), "the value of '--wait'");
  expectPart(os.str(), "'--order' says parameter 'order', and 'z' is neither a number nor a word");
}

TEST_F(Launchers, ReadContradictions) {
  EXPECT_EQ(read("--full --no-ring --level 2", "modes"), "zero = 2, recompute = full");
  expectPart(
      read("--full --selective --ring --level 0", "modes"),
      "'--full', '--selective' contradict each other, because no value of 'recompute' is written as all of them; "
      "leave one out [flags-contradict]");
  // All values are written with a flag.
  expectPart(read("--level 0", "modes"),
             "no value of 'ring' is written without a flag; give one of '--ring', '--no-ring' [flags-contradict]");
  expectPart(read("--ring", "modes"), "no value of 'zero' is written without a flag; give one of '--level'");
  expectPart(read("--ring --level 0 --tp-of-2 7", "modes"),
             "'--tp-of-2 7' would say 'tp = 7/2', and 'tp' is a whole number [flag-value]");
  EXPECT_EQ(read("--ring --level 0 --tp-of-2 16", "modes"), "tp = 8, zero = 0, ring = true");
}

TEST_F(Launchers, Write) {
  EXPECT_EQ(write({}), "--sp --comm=gather");
  EXPECT_EQ(write({give("tp", 8), give("pp", 2)}), "--pp 2 --tp 8 --sp --comm=gather");
  EXPECT_EQ(write({give("sequence_parallel", sema::CTValue::boolean(false)), give("zero", 1)}),
            "--shard --comm=gather");
  EXPECT_EQ(write({give("recompute", sema::CTValue::word("full")), give("bucket", bytes(40))}),
            "--sp --recompute full --bucket 10 --comm=gather");
  EXPECT_EQ(write({give("ring", sema::CTValue::boolean(true)), give("reduce_type", sema::CTValue::word("f32"))}),
            "--sp --reduce=fp32");
  EXPECT_EQ(write({give("tokens", 4000)}), "--sp --comm=gather --kilotokens 4");
  EXPECT_EQ(write({give("ring", sema::CTValue::boolean(true))}, "keys"), "comm.ring true");
}

// Megatron-LM's arguments for its GPT-3 175B example, and those of DeepSpeed, torchtitan and vLLM, each with the plan
// that they are.
TEST_F(Launchers, Library) {
  EXPECT_EQ(read("--tensor-model-parallel-size 8 --pipeline-model-parallel-size 16 --num-layers 96 --hidden-size 12288 "
                 "--num-attention-heads 96 --seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 1 "
                 "--global-batch-size 1536 --train-iters 500000 --lr 6.0e-5 --lr-decay-style cosine --split 949,50,1 "
                 "--sequence-parallel --use-distributed-optimizer --recompute-granularity selective --bf16 "
                 "--cp-comm-type all_gather",
                 "megatron_lm"),
            "pp = 16, tp = 8, zero = 1, recompute = selective, Llama.L = 96, Llama.D = 12288, Llama.H = 96, "
            "train.microbatch = 1, train.B = 1536, train.S = 2048, job.precision = bf16_mixed");
  EXPECT_EQ(read("--recompute-granularity full --recompute-method uniform --recompute-num-layers 2", "megatron_lm"),
            read("--recompute-num-layers=2 --recompute-granularity=full", "megatron_lm"));
  expectPart(read("--recompute-method block", "megatron_lm"), "the value of '--recompute-method' is one of uniform");
  // One that changes the plan in a way of its own.
  expectPart(read("--use-megatron-fsdp", "megatron_lm"), "launcher 'megatron_lm' has no flag '--use-megatron-fsdp'");
  EXPECT_EQ(
      write({give("tp", 8), give("cp", 2), give("dp", 4), give("bucket", bytes(160'000'000))}, "megatron_lm", {"dp"}),
      "--context-parallel-size 2 --tensor-model-parallel-size 8 --sequence-parallel --ddp-bucket-size 40000000 "
      "--cp-comm-type=all_gather");
  EXPECT_EQ(
      read("--expert-model-parallel-size 8 --expert-tensor-parallel-size 1 --sequence-parallel", "megatron_lm_moe"),
      "ep = 8, etp = 1");
  EXPECT_EQ(read("zero_optimization.stage 2 zero_optimization.reduce_bucket_size 500000000 "
                 "zero_optimization.offload_optimizer.device cpu communication_data_type fp32 bf16.enabled true",
                 "deepspeed"),
            "stage = 2, bucket = 1GB, reduce_type = f32, offload_optimizer = true, job.precision = bf16_mixed");
  expectPart(read("bf16.enabled true", "deepspeed"), "no value of 'stage' is written without a flag");
  EXPECT_EQ(read("--parallelism.data_parallel_shard_degree=64 --parallelism.fsdp_reshard_after_forward=never "
                 "--activation_checkpoint.mode=none",
                 "torchtitan"),
            "dp = 64, keep = true");
  EXPECT_EQ(read("--tensor-parallel-size 8 --data-parallel-size 2 --max-model-len 8192", "vllm"),
            "dp = 2, tp = 8, sequence_parallel = false, infer.S = 8192");
  EXPECT_EQ(read("--tensor-parallel-size 8 --decode-context-parallel-size 2", "vllm_decode_context"),
            "tp = 8, dcp = 2");
}

// What reading would not give back is refused.
TEST_F(Launchers, WriteFaults) {
  expectPart(write({give("zero", 2)}), "launcher 'l' has no flag that says 'zero = 2'; add one to the launcher, "
                                       "or leave the argument out [no-flag-says]");
  expectPart(write({give("dp", 4)}), "launcher 'l' has no flag that says 'dp = 4'");
  EXPECT_EQ(write({give("dp", 4)}, "l", {"dp"}), "--sp --comm=gather");
  EXPECT_EQ(write({give("dp", 1)}), "--sp --comm=gather");
  expectPart(write({give("bucket", bytes(42))}), "launcher 'l' has no flag that says 'bucket = 42B'");
  expectPart(write({give("tokens", 4001)}), "launcher 'l' has no flag that says 'tokens = 4001'");
  expectPart(write({give("reduce_type", sema::CTValue::word("f16"))}), "no flag that says 'reduce_type = f16'");
  expectPart(write({give("tp", 3)}), "'tp' is one of [1, 2, 4, 8, 16], found 3");
  expectPart(write({give("tpp", 3)}), "'plan' has no parameter 'tpp'");
  auto *order = program.lookup(*program.getMain(), "gpipe");
  EXPECT_EQ(write({give("order", sema::CTValue::decl(order))}), "--sp --order gpipe --comm=gather");
  expectPart(write({give("order", sema::CTValue::decl(order, {give("v", 2)}))}),
             "launcher 'l' has no flag that says 'order = gpipe'");
}

// Flags -> values -> flags, for each of them alone and for all of them.
TEST_F(Launchers, FlagsAreGivenBack) {
  for (const char *words :
       {"", "--sp", "--comm=gather", "--pp 2", "--tp 16", "--shard", "--recompute selective", "--bucket 1", "--group 0",
        "--wait 7", "--order gpipe", "--reduce=bf16", "--reduce=fp32", "--kilotokens 2",
        "--pp 2 --tp 4 --sp --shard --recompute full --bucket 9 --group 1 --wait 0 --order gpipe --comm=gather "
        "--reduce=bf16 --kilotokens 1"}) {
    EXPECT_EQ(writeBack(words), words);
  }
}
