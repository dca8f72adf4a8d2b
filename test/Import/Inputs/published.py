"""Imports published configurations: the parameters of what comes out are those of the published weights.

    published.py stagec scratch-folder [configuration.json=total ...]

Fields are those of the config.json files on huggingface.co (organisation/name as below) that say something of sizes; totals
are those of the safetensors files there, each weight once (a tied output layer is its embedding).
"""
import json
import os
import re
import subprocess
import sys

stagec, scratch, *files = sys.argv[1:]


def llama(layers, d, heads, kv, f, v, **more):
    return {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "num_hidden_layers": layers,
            "hidden_size": d, "num_attention_heads": heads, "num_key_value_heads": kv, "intermediate_size": f, "vocab_size": v,
            "max_position_embeddings": 4096, "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "torch_dtype": "bfloat16",
            "use_cache": True, "tie_word_embeddings": False, **more}


def mistral(*sizes, **more):
    return llama(*sizes, **{"model_type": "mistral", "sliding_window": None, **more})


def qwen2(*sizes, **more):
    return llama(*sizes, **{"model_type": "qwen2", "use_sliding_window": False, "sliding_window": 131072, "max_window_layers": 28,
                            "attention_dropout": 0.0, "use_mrope": False, **more})


def qwen3(*sizes, **more):
    return llama(*sizes, **{"model_type": "qwen3", "use_sliding_window": False, "sliding_window": None, "max_window_layers": 36,
                            "head_dim": 128, "attention_bias": False, "rope_scaling": None, **more})


def gemma2(*sizes, **more):
    return llama(*sizes, **{"model_type": "gemma2", "hidden_act": "gelu_pytorch_tanh", "hidden_activation": "gelu_pytorch_tanh",
                            "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0, "query_pre_attn_scalar": 256,
                            "sliding_window": 4096, "cache_implementation": "hybrid", "tie_word_embeddings": True, **more})


def phi3(*sizes, **more):
    return llama(*sizes, **{"model_type": "phi3", "embd_pdrop": 0.0, "resid_pdrop": 0.0, "sliding_window": 2047, "rope_scaling": None,
                            "original_max_position_embeddings": 4096, "attention_bias": False, **more})


def gpt2(layers, d, heads, **more):
    return {"model_type": "gpt2", "activation_function": "gelu_new", "n_layer": layers, "n_embd": d, "n_head": heads, "n_ctx": 1024,
            "n_positions": 1024, "vocab_size": 50257, "attn_pdrop": 0.1, "embd_pdrop": 0.1, "resid_pdrop": 0.1,
            "layer_norm_epsilon": 1e-05, "summary_type": "cls_index", "summary_use_proj": True, "summary_first_dropout": 0.1,
            "summary_activation": None, "task_specific_params": {"text-generation": {"do_sample": True, "max_length": 50}}, **more}


def bert(layers, d, heads, v=30522):
    return {"model_type": "bert", "num_hidden_layers": layers, "hidden_size": d, "num_attention_heads": heads,
            "intermediate_size": 4 * d, "vocab_size": v, "max_position_embeddings": 512, "type_vocab_size": 2, "hidden_act": "gelu",
            "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1, "layer_norm_eps": 1e-12, "pad_token_id": 0,
            "position_embedding_type": "absolute", "gradient_checkpointing": False}


def t5(layers, d, heads, e, f, v=32128, **more):
    return {"model_type": "t5", "num_layers": layers, "d_model": d, "num_heads": heads, "d_kv": e, "d_ff": f, "vocab_size": v,
            "relative_attention_num_buckets": 32, "dropout_rate": 0.1, "n_positions": 512, "is_encoder_decoder": True,
            "initializer_factor": 1.0, "layer_norm_epsilon": 1e-06, "decoder_start_token_id": 0, **more}


def gated_t5(*sizes, **more):
    return t5(*sizes, **{"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False, **more})


def falcon(layers, d, heads, **more):
    return {"model_type": "falcon", "num_hidden_layers": layers, "hidden_size": d, "num_attention_heads": heads, "vocab_size": 65024,
            "alibi": False, "bias": False, "multi_query": True, "parallel_attn": True, "hidden_dropout": 0.0,
            "apply_residual_connection_post_layernorm": False, "layer_norm_epsilon": 1e-05, **more}


def deepseek(layers, d, heads, f, fe, x, k, shared, dense, v, **more):
    return {"model_type": "deepseek_v3", "num_hidden_layers": layers, "hidden_size": d, "num_attention_heads": heads,
            "num_key_value_heads": heads, "intermediate_size": f, "moe_intermediate_size": fe, "n_routed_experts": x,
            "num_experts_per_tok": k, "n_shared_experts": shared, "first_k_dense_replace": dense, "vocab_size": v,
            "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
            "moe_layer_freq": 1, "n_group": 8, "topk_group": 4, "norm_topk_prob": True, "routed_scaling_factor": 2.5,
            "scoring_func": "sigmoid", "topk_method": "noaux_tc", "hidden_act": "silu", "attention_bias": False, "aux_loss_alpha": 0.001,
            "seq_aux": True, "rope_theta": 10000, "max_position_embeddings": 163840, "tie_word_embeddings": False, **more}


def glm(layers, d, f, fe, x, dense, **more):
    return {"model_type": "glm4_moe", "num_hidden_layers": layers, "hidden_size": d, "num_attention_heads": 96, "num_key_value_heads": 8,
            "head_dim": 128, "intermediate_size": f, "moe_intermediate_size": fe, "n_routed_experts": x, "num_experts_per_tok": 8,
            "n_shared_experts": 1, "first_k_dense_replace": dense, "vocab_size": 151552, "partial_rotary_factor": 0.5,
            "attention_bias": True, "hidden_act": "silu", "norm_topk_prob": True, "n_group": 1, "topk_group": 1,
            "num_nextn_predict_layers": 1, "rope_theta": 1000000, "routed_scaling_factor": 1.0, "tie_word_embeddings": False, **more}



def neox(layers, d, heads, v, **more):
    return {"model_type": "gpt_neox", "num_hidden_layers": layers, "hidden_size": d, "num_attention_heads": heads, "intermediate_size": 4 * d,
            "vocab_size": v, "hidden_act": "gelu", "rotary_pct": 0.25, "rotary_emb_base": 10000, "max_position_embeddings": 2048,
            "use_parallel_residual": True, "layer_norm_eps": 1e-05, "tie_word_embeddings": False, "classifier_dropout": 0.1, **more}


def nemotron3(layers, pattern, d, x, k, fe, mamba_heads, **more):
    return {"model_type": "nemotron_h", "num_hidden_layers": layers, "hybrid_override_pattern": pattern, "hidden_size": d,
            "num_attention_heads": 32, "num_key_value_heads": 2, "head_dim": 128, "intermediate_size": fe, "moe_intermediate_size": fe,
            "moe_shared_expert_intermediate_size": 2 * fe, "moe_shared_expert_overlap": False, "n_routed_experts": x, "n_shared_experts": 1,
            "num_experts_per_tok": k, "n_group": 1, "topk_group": 1, "norm_topk_prob": True, "routed_scaling_factor": 2.5, "vocab_size": 131072,
            "mamba_num_heads": mamba_heads, "mamba_head_dim": 64, "n_groups": 8, "ssm_state_size": 128, "chunk_size": 128, "conv_kernel": 4,
            "expand": 2, "attention_bias": False, "mlp_bias": False, "use_bias": False, "mamba_proj_bias": False, "use_conv_bias": True,
            "mamba_hidden_act": "silu", "mlp_hidden_act": "relu2", "mamba_ssm_cache_dtype": "float32", "norm_eps": 1e-05,
            "partial_rotary_factor": 1.0, "num_logits_to_keep": 1, "rescale_prenorm_residual": True, "residual_in_fp32": False,
            "use_mamba_kernels": True, "time_step_min": 0.001, "tie_word_embeddings": False, **more}


def mamba(layers, d):
    return {"model_type": "mamba", "num_hidden_layers": layers, "hidden_size": d, "intermediate_size": 2 * d, "state_size": 16, "conv_kernel": 4,
            "time_step_rank": d // 16, "vocab_size": 50280, "use_bias": False, "use_conv_bias": True, "hidden_act": "silu"}


V2 = {"model_type": "deepseek_v2", "scoring_func": "softmax", "topk_method": "group_limited_greedy", "topk_group": 3, "norm_topk_prob": False}
MOE = {"num_local_experts": 8, "num_experts_per_tok": 2, "output_router_logits": False, "router_aux_loss_coef": 0.02}
# Numbers that are not trained, the biases of routers, are published with the weights: they count here.
PUBLISHED = {
    "mistralai/Mixtral-8x22B-v0.1": (140620634112, mistral(56, 6144, 48, 8, 16384, 32000, **{**MOE, "model_type": "mixtral"})),
    "Qwen/Qwen3-235B-A22B": (235093634560, qwen3(
        94, 4096, 64, 4, 12288, 151936, model_type="qwen3_moe", num_experts=128, num_experts_per_tok=8, moe_intermediate_size=1536,
        decoder_sparse_step=1, mlp_only_layers=[], norm_topk_prob=True, router_aux_loss_coef=0.001)),
    "openai/gpt-oss-120b": (116829156672, llama(
        36, 2880, 64, 8, 2880, 201088, model_type="gpt_oss", attention_bias=True, head_dim=64, num_local_experts=128, experts_per_token=4,
        num_experts_per_tok=4, sliding_window=128, swiglu_limit=7.0, layer_types=["sliding_attention", "full_attention"] * 18)),
    "deepseek-ai/DeepSeek-V2": (235741434880, deepseek(60, 5120, 128, 12288, 1536, 160, 6, 2, 1, 102400, **V2)),
    "deepseek-ai/DeepSeek-V2-Lite": (15706484224, deepseek(
        27, 2048, 16, 10944, 1408, 64, 6, 2, 1, 102400, **{**V2, "q_lora_rank": None, "topk_method": "greedy", "n_group": 1, "topk_group": 1})),
    # Without the layer that predicts further tokens, whose own embedding and output layer the files have, too: with these they are
    # the 110,468,824,832 of the files of GLM-4.5-Air.
    "zai-org/GLM-4.5-Air": (110468824832 - 3616573568, glm(46, 4096, 10944, 1408, 128, 1, use_qk_norm=False)),
    "openai-community/gpt2": (124439808, gpt2(12, 768, 12)),
    "openai-community/gpt2-medium": (354823168, gpt2(24, 1024, 16)),
    "openai-community/gpt2-large": (774030080, gpt2(36, 1280, 20)),
    "openai-community/gpt2-xl": (1557611200, gpt2(48, 1600, 25)),
    "distilbert/distilgpt2": (81912576, gpt2(6, 768, 12)),
    "EleutherAI/gpt-j-6b": (6050882784, {
        "model_type": "gptj", "n_layer": 28, "n_embd": 4096, "n_head": 16, "n_inner": None, "n_positions": 2048, "rotary": True,
        "rotary_dim": 64, "vocab_size": 50400, "activation_function": "gelu_new", "scale_attn_weights": True,
        "tie_word_embeddings": False, "embd_pdrop": 0.0, "use_cache": True, "tokenizer_class": "GPT2Tokenizer"}),
    "meta-llama/Llama-2-7b-hf": (6738415616, llama(32, 4096, 32, 32, 11008, 32000, pretraining_tp=1)),
    "meta-llama/Llama-2-13b-hf": (13015864320, llama(40, 5120, 40, 40, 13824, 32000)),
    "meta-llama/Llama-2-70b-hf": (68976648192, llama(80, 8192, 64, 8, 28672, 32000)),
    "meta-llama/Meta-Llama-3-70B": (70553706496, llama(80, 8192, 64, 8, 28672, 128256)),
    "meta-llama/Llama-3.1-405B": (405853388800, llama(126, 16384, 128, 8, 53248, 128256, mlp_bias=False)),
    "meta-llama/Llama-3.2-1B": (1235814400, llama(16, 2048, 32, 8, 8192, 128256, head_dim=64, tie_word_embeddings=True)),
    "meta-llama/Llama-3.2-3B": (3212749824, llama(28, 3072, 24, 8, 8192, 128256, head_dim=128, tie_word_embeddings=True)),
    "TinyLlama/TinyLlama_v1.1": (1100048384, llama(22, 2048, 32, 4, 5632, 32000)),
    "HuggingFaceTB/SmolLM2-135M": (134515008, llama(30, 576, 9, 3, 1536, 49152, tie_word_embeddings=True, rope_interleaved=False)),
    "HuggingFaceTB/SmolLM2-1.7B": (1711376384, llama(24, 2048, 32, 32, 8192, 49152, tie_word_embeddings=True)),
    "01-ai/Yi-6B": (6061035520, llama(32, 4096, 32, 4, 11008, 64000)),
    "01-ai/Yi-34B": (34388917248, llama(60, 7168, 56, 8, 20480, 64000)),
    "codellama/CodeLlama-34b-hf": (33743970304, llama(48, 8192, 64, 8, 22016, 32000)),
    "mistralai/Mistral-7B-v0.1": (7241732096, mistral(32, 4096, 32, 8, 14336, 32000, sliding_window=4096)),
    "mistralai/Mistral-7B-v0.3": (7248023552, mistral(32, 4096, 32, 8, 14336, 32768)),
    "mistralai/Mistral-Nemo-Base-2407": (12247782400, mistral(40, 5120, 32, 8, 14336, 131072, head_dim=128)),
    "mistralai/Mistral-Small-24B-Base-2501": (23572403200, mistral(40, 5120, 32, 8, 32768, 131072, head_dim=128)),
    "mistralai/Mistral-Large-Instruct-2407": (122610069504, mistral(88, 12288, 96, 8, 28672, 32768)),
    "Qwen/Qwen2.5-0.5B": (494032768, qwen2(24, 896, 14, 2, 4864, 151936, tie_word_embeddings=True)),
    "Qwen/Qwen2.5-1.5B": (1543714304, qwen2(28, 1536, 12, 2, 8960, 151936, tie_word_embeddings=True)),
    "Qwen/Qwen2.5-3B": (3085938688, qwen2(36, 2048, 16, 2, 11008, 151936, tie_word_embeddings=True)),
    "Qwen/Qwen2.5-7B": (7615616512, qwen2(28, 3584, 28, 4, 18944, 152064)),
    "Qwen/Qwen2.5-32B": (32763876352, qwen2(64, 5120, 40, 8, 27648, 152064)),
    "Qwen/Qwen2.5-72B": (72706203648, qwen2(80, 8192, 64, 8, 29568, 152064)),
    "Qwen/Qwen3-0.6B": (596049920, qwen3(28, 1024, 16, 8, 3072, 151936, tie_word_embeddings=True)),
    "Qwen/Qwen3-4B": (4022468096, qwen3(36, 2560, 32, 8, 9728, 151936, tie_word_embeddings=True)),
    "Qwen/Qwen3-14B": (14768307200, qwen3(40, 5120, 40, 8, 17408, 151936)),
    "Qwen/Qwen3-32B": (32762123264, qwen3(64, 5120, 64, 8, 25600, 151936)),
    "google/gemma-2-2b": (2614341888, gemma2(26, 2304, 8, 4, 9216, 256000, head_dim=256)),
    "google/gemma-2-9b": (9241705984, gemma2(42, 3584, 16, 8, 14336, 256000, head_dim=256, sliding_window_size=4096)),
    "google/gemma-2-27b": (27227128320, gemma2(46, 4608, 32, 16, 36864, 256000, head_dim=128, query_pre_attn_scalar=144)),
    "google/gemma-3-1b-pt": (999885952, gemma2(
        26, 1152, 4, 1, 6912, 262144, model_type="gemma3_text", head_dim=256, sliding_window=512, sliding_window_pattern=6,
        rope_local_base_freq=10000, rope_theta=1000000, attn_logit_softcapping=None, final_logit_softcapping=None)),
    # The same as newer files have it: a word for each layer, and thetas apart.
    "google/gemma-3-1b-it": (999885952, {**gemma2(
        26, 1152, 4, 1, 6912, 262144, model_type="gemma3_text", head_dim=256, sliding_window=512, rope_theta=None,
        rope_parameters={"full_attention": {"rope_theta": 1000000}, "sliding_attention": {"rope_theta": 10000}},
        layer_types=["full_attention" if i % 6 == 5 else "sliding_attention" for i in range(26)],
        attn_logit_softcapping=None, final_logit_softcapping=None)}),
    "microsoft/Phi-3-mini-4k-instruct": (3821079552, phi3(32, 3072, 32, 32, 8192, 32064)),
    "microsoft/Phi-3-medium-4k-instruct": (13960238080, phi3(40, 5120, 40, 10, 17920, 32064)),
    "microsoft/phi-4": (14659507200, phi3(40, 5120, 40, 10, 17920, 100352, sliding_window=None, rope_theta=250000)),
    "microsoft/Phi-4-mini-instruct": (3836021760, phi3(
        32, 3072, 24, 8, 8192, 200064, sliding_window=262144, partial_rotary_factor=0.75, tie_word_embeddings=True,
        full_attn_mod=1, interpolate_factor=1)),
    "tiiuae/falcon-7b": (6921720704, falcon(32, 4544, 71, new_decoder_architecture=False)),
    "tiiuae/falcon-40b": (41303293952, falcon(60, 8192, 128, new_decoder_architecture=True, num_kv_heads=8)),
    "state-spaces/mamba-130m-hf": (129135360, {
        "model_type": "mamba", "num_hidden_layers": 24, "hidden_size": 768, "intermediate_size": 1536, "state_size": 16, "conv_kernel": 4,
        "time_step_rank": 48, "expand": 2, "vocab_size": 50280, "use_bias": False, "use_conv_bias": True, "hidden_act": "silu",
        "residual_in_fp32": True, "rescale_prenorm_residual": False, "time_step_min": 0.001, "time_step_init_scheme": "random"}),
    "state-spaces/mamba-2.8b-hf": (2768345600, {
        "model_type": "mamba", "num_hidden_layers": 64, "hidden_size": 2560, "intermediate_size": 5120, "state_size": 16, "conv_kernel": 4,
        "time_step_rank": 160, "vocab_size": 50280, "use_bias": False, "use_conv_bias": True, "hidden_act": "silu"}),
    "state-spaces/mamba2-130m": (128989632, {
        "model_type": "mamba2", "num_hidden_layers": 24, "hidden_size": 768, "num_heads": 24, "head_dim": 64, "n_groups": 1, "state_size": 128,
        "chunk_size": 256, "conv_kernel": 4, "expand": 2, "vocab_size": 50288, "use_bias": False, "use_conv_bias": True, "hidden_act": "silu",
        "rms_norm": True, "tie_word_embeddings": True, "time_step_limit": [0.0, float("inf")]}),
    "ai21labs/Jamba-v0.1": (51570323328, {
        "model_type": "jamba", "num_hidden_layers": 32, "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32,
        "num_key_value_heads": 8, "num_experts": 16, "num_experts_per_tok": 2, "vocab_size": 65536, "attn_layer_period": 8, "attn_layer_offset": 4,
        "expert_layer_period": 2, "expert_layer_offset": 1, "mamba_conv_bias": True, "mamba_d_conv": 4, "mamba_d_state": 16, "mamba_dt_rank": 256,
        "mamba_expand": 2, "mamba_inner_layernorms": True, "mamba_proj_bias": False, "hidden_act": "silu", "n_ctx": 262144,
        "num_logits_to_keep": 1, "sliding_window": None, "router_aux_loss_coef": 0.001, "use_mamba_kernels": True, "tie_word_embeddings": False}),
    "google-bert/bert-base-uncased": (110106428, bert(12, 768, 12)),
    "google-bert/bert-large-uncased": (336226108, bert(24, 1024, 16)),
    "google-t5/t5-small": (60506624, t5(6, 512, 8, 64, 2048)),
    "google-t5/t5-base": (222903552, t5(12, 768, 12, 64, 3072)),
    "google-t5/t5-11b": (11307321344, t5(24, 1024, 128, 128, 65536)),
    "google/flan-t5-base": (247577856, gated_t5(12, 768, 12, 64, 2048, num_decoder_layers=12)),
    "google/flan-t5-xxl": (11135332352, gated_t5(24, 4096, 64, 64, 10240)),
    "google/mt5-small": (300176768, gated_t5(8, 512, 6, 64, 1024, 250112, model_type="mt5", num_decoder_layers=8)),
    "google/mt5-base": (582401280, gated_t5(12, 768, 12, 64, 2048, 250112, model_type="mt5")),
    "google/vit-base-patch16-224": (86567656, {
        "model_type": "vit", "num_hidden_layers": 12, "hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072,
        "image_size": 224, "patch_size": 16, "num_channels": 3, "qkv_bias": True, "hidden_act": "gelu", "layer_norm_eps": 1e-12,
        "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "id2label": {str(i): f"class {i}" for i in range(1000)},
        "label2id": {f"class {i}": i for i in range(1000)}}),
}

# Where each of these totals was published: 'hub', the Hub's count of the weights of that name (api/models/NAME, safetensors.total); 'headers', a
# sum over the headers of all its files; 'gguf', what files for llama.cpp say (general.parameter_count); 'keras', presets of Keras Hub
# (their metadata, params); 'card', the table of its model card; or a paper. Less what is said: what the library's model leaves out.
CITED = {
    "huggyllama/llama-30b": (32528943616, "hub", llama(60, 6656, 52, 52, 17920, 32000)),
    "huggyllama/llama-65b": (65285660672, "hub", llama(80, 8192, 64, 64, 22016, 32000)),
    "codellama/CodeLlama-7b-hf": (6738546688, "gguf", llama(32, 4096, 32, 32, 11008, 32016)),
    "codellama/CodeLlama-13b-hf": (13016028160, "hub", llama(40, 5120, 40, 40, 13824, 32016)),
    "deepseek-ai/deepseek-llm-7b-base": (6910365696, "hub", llama(30, 4096, 32, 32, 11008, 102400)),
    "deepseek-ai/deepseek-coder-1.3b-base": (1346471936, "hub", llama(24, 2048, 16, 16, 5504, 32256)),
    "deepseek-ai/deepseek-coder-6.7b-base": (6740512768, "hub", llama(32, 4096, 32, 32, 11008, 32256)),
    "01-ai/Yi-9B": (8829407232, "gguf", llama(48, 4096, 32, 4, 11008, 64000)),
    "HuggingFaceTB/SmolLM2-360M": (361821120, "hub", llama(32, 960, 15, 5, 2560, 49152, tie_word_embeddings=True)),
    "upstage/SOLAR-10.7B-v1.0": (10731524096, "hub", llama(48, 4096, 32, 8, 14336, 32000)),
    "tiiuae/Falcon3-1B-Base": (1669408768, "hub", llama(18, 2048, 8, 4, 8192, 131072, head_dim=256)),
    "tiiuae/Falcon3-3B-Base": (3227655168, "hub", llama(22, 3072, 12, 4, 9216, 131072, head_dim=256)),
    "sarvamai/sarvam-1": (2525087744, "hub", llama(28, 2048, 16, 8, 11008, 68096, head_dim=128)),
    "mistralai/Ministral-8B-Instruct-2410": (8019808256, "hub", mistral(36, 4096, 32, 8, 12288, 131072, head_dim=128, sliding_window=32768)),
    "dphn/dolphin-2.5-mixtral-8x7b": (46702809088, "hub", mistral(32, 4096, 32, 8, 14336, 32002, **{**MOE, "model_type": "mixtral"})),
    "Qwen/Qwen1.5-7B": (7721324544, "hub", qwen2(32, 4096, 32, 32, 11008, 151936)),
    "Qwen/Qwen1.5-14B": (14167290880, "gguf", qwen2(40, 5120, 40, 40, 13696, 152064)),
    "Qwen/Qwen1.5-32B": (32512218112, "gguf", qwen2(64, 5120, 40, 8, 27392, 152064)),
    "Qwen/Qwen2.5-14B": (14770033664, "gguf", qwen2(48, 5120, 40, 8, 13824, 152064)),
    # The files hold the embedding twice.
    "Qwen/Qwen3-1.7B": (2031739904 - 151936 * 2048, "hub", qwen3(28, 2048, 16, 8, 6144, 151936, tie_word_embeddings=True)),
    "Qwen/Qwen1.5-MoE-A2.7B": (14315784192, "hub", qwen2(
        24, 2048, 16, 16, 5632, 151936, model_type="qwen2_moe", num_experts=60, num_experts_per_tok=4, moe_intermediate_size=1408,
        shared_expert_intermediate_size=5632, decoder_sparse_step=1, norm_topk_prob=False, router_aux_loss_coef=0.001, sliding_window=None)),
    "Qwen/Qwen3-Coder-480B-A35B-Instruct": (480154875392, "hub", qwen3(
        62, 6144, 96, 8, 8192, 151936, model_type="qwen3_moe", num_experts=160, num_experts_per_tok=8, moe_intermediate_size=2560,
        decoder_sparse_step=1, mlp_only_layers=[], norm_topk_prob=True, shared_expert_intermediate_size=0, qkv_bias=False)),
    "google/gemma-3-270m": (268098176, "keras", gemma2(
        18, 640, 4, 1, 2048, 262144, model_type="gemma3_text", head_dim=256, sliding_window=512, rope_local_base_freq=10000.0, rope_theta=1000000.0,
        layer_types=["full_attention" if i % 6 == 5 else "sliding_attention" for i in range(18)],
        attn_logit_softcapping=None, final_logit_softcapping=None)),
    "microsoft/Phi-3.5-mini-instruct": (3821079552, "hub", phi3(32, 3072, 32, 32, 8192, 32064, sliding_window=262144)),
    "EleutherAI/pythia-14m": (14067712, "card", neox(6, 128, 4, 50304)),
    "EleutherAI/pythia-70m": (70426624, "arXiv 2304.01373", neox(6, 512, 8, 50304)),
    "EleutherAI/pythia-160m": (162322944, "arXiv 2304.01373", neox(12, 768, 12, 50304)),
    "EleutherAI/pythia-410m": (405334016, "arXiv 2304.01373", neox(24, 1024, 16, 50304)),
    "EleutherAI/pythia-1b": (1011781632, "arXiv 2304.01373", neox(16, 2048, 8, 50304)),
    "EleutherAI/pythia-1.4b": (1414647808, "arXiv 2304.01373", neox(24, 2048, 16, 50304)),
    "EleutherAI/pythia-2.8b": (2775208960, "arXiv 2304.01373", neox(32, 2560, 32, 50304)),
    "EleutherAI/pythia-6.9b": (6857302016, "arXiv 2304.01373", neox(32, 4096, 32, 50432)),
    "EleutherAI/pythia-12b": (11846072320, "arXiv 2304.01373", neox(36, 5120, 40, 50688)),
    "EleutherAI/gpt-neox-20b": (20554567680, "card", neox(44, 6144, 64, 50432, hidden_act="gelu_fast")),
    "google-bert/bert-base-multilingual-cased": (178566653, "hub", bert(12, 768, 12, 119547)),
    "google-t5/t5-large": (737668096, "keras", t5(24, 1024, 16, 64, 4096)),
    "google-t5/t5-3b": (2851598336, "keras", t5(24, 1024, 32, 128, 16384)),
    "google/flan-t5-small": (76961152, "hub", gated_t5(8, 512, 6, 64, 1024, num_decoder_layers=8)),
    "google/flan-t5-large": (783150080, "hub", gated_t5(24, 1024, 16, 64, 2816)),
    "google/flan-t5-xl": (2849757184, "keras", gated_t5(24, 2048, 32, 64, 5120)),
    "google/byt5-small": (299637760, "hub", gated_t5(12, 1472, 6, 64, 3584, 384, num_decoder_layers=4)),
    "state-spaces/mamba-370m-hf": (371516416, "hub", mamba(48, 1024)),
    "state-spaces/mamba-790m-hf": (793204224, "hub", mamba(48, 1536)),
    "state-spaces/mamba-1.4b-hf": (1372178432, "hub", mamba(48, 2048)),
    # Biases of routers, 128 in each of 23 layers, are in 32 bits, and what is published counts numbers in 16.
    "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": (31577937344 + 23 * 128, "hub", nemotron3(
        52, "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME", 2688, 128, 6, 1856, 64)),
    # Less two layers that predict further tokens, of 2,942,324,736 numbers and 512 biases.
    "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-BF16": (123611033088 - 2942324736 - 512, "headers", nemotron3(
        88, "MEMEMEM*EMEMEMEM*EMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEM*EMEMEMEME", 4096, 512, 22, 2688, 128,
        moe_latent_size=1024, num_nextn_predict_layers=1, mtp_hybrid_override_pattern="*E", routed_scaling_factor=5.0)),
    "deepseek-ai/deepseek-moe-16b-base": (16375728128, "hub", {
        "model_type": "deepseek", "num_hidden_layers": 28, "hidden_size": 2048, "num_attention_heads": 16, "num_key_value_heads": 16,
        "intermediate_size": 10944, "moe_intermediate_size": 1408, "n_routed_experts": 64, "num_experts_per_tok": 6, "n_shared_experts": 2,
        "first_k_dense_replace": 1, "moe_layer_freq": 1, "vocab_size": 102400, "norm_topk_prob": False, "scoring_func": "softmax",
        "aux_loss_alpha": 0.001, "seq_aux": True, "hidden_act": "silu", "attention_bias": False, "rope_theta": 10000,
        "max_position_embeddings": 4096, "tie_word_embeddings": False}),
    "moonshotai/Kimi-K2-Instruct": (1026408232448, "headers", deepseek(
        61, 7168, 64, 18432, 2048, 384, 8, 1, 1, 163840, model_type="kimi_k2", n_group=1, topk_group=1, routed_scaling_factor=2.827)),
    # GLM-4.5-Air without the layer that predicts further tokens.
    "PrimeIntellect/INTELLECT-3": (106852251264, "hub", glm(46, 4096, 10944, 1408, 128, 1, use_qk_norm=False, num_nextn_predict_layers=0)),
    # Less the layer that predicts further tokens: two products, norms, attention, 161 experts, a router and its biases; and its own embedding and output layer.
    "zai-org/GLM-4.5": (358337791296 - 3988069632 - 160 - 2 * 151552 * 5120, "hub", glm(92, 5120, 12288, 1536, 160, 3, use_qk_norm=True, routed_scaling_factor=2.5)),
    "zai-org/GLM-4.6": (356785898816 - 3988069632 - 160, "hub", glm(92, 5120, 12288, 1536, 160, 3, use_qk_norm=True, routed_scaling_factor=2.5)),
}

wrong = 0


def check(path, total):
    global wrong
    done = subprocess.run([stagec, "import", path, "-o", os.path.join(scratch, "job.stg"), "--force"], capture_output=True, text=True)
    counts = [re.search(pattern, done.stdout) for pattern in (r", ([\d,]+) parameters", r", and ([\d,]+) numbers that are not trained")]
    if done.returncode or sum(int(count[1].replace(",", "")) for count in counts if count) != total:
        wrong += 1
        print(f"{path}: expected {total} parameters\n{done.stdout}{done.stderr}")


os.makedirs(scratch, exist_ok=True)
configurations = [*PUBLISHED.items(), *((name, (total, fields)) for name, (total, _, fields) in CITED.items())]
for name, (total, fields) in configurations:
    path = os.path.join(scratch, name.split("/")[1] + ".json")
    with open(path, "w") as file:
        json.dump(fields, file, indent=2)
    check(path, total)
for argument in files:
    path, total = argument.split("=")
    check(path, int(total))
print(f"{len(configurations) + len(files)} configurations, {wrong} faults")
