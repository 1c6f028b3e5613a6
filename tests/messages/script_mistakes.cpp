#include "tests/messages/mistakes.h"

#include "stretto/base/files.h"
#include "stretto/compat/flair_script.h"
#include "stretto/compat/hf_script.h"
#include "stretto/compat/llama_job.h"
#include "stretto/compat/llama_script.h"

namespace stretto {
namespace {

using Flags = std::vector<std::string>;

void add_hf_scripts(Mistakes& all) {
  using compat::Script;
  const auto add = [&](Script script, const char* name, const Flags& flags) {
    all.push_back({std::string("script: ") + name, [=] { compat::translate_script(script, flags); }});
  };
  const auto ner = [&](const char* name, const Flags& more) {
    Flags flags = {"--model_name_or_path", "m", "--output_dir", "o", "--train_file", "t"};
    flags.insert(flags.end(), more.begin(), more.end());
    add(Script::ner, name, flags);
  };
  add(Script::ner, "nothing to do", {"--model_name_or_path", "m", "--output_dir", "o"});
  add(Script::ner, "no file", {"--model_name_or_path", "m", "--output_dir", "o", "--do_train"});
  add(Script::qa, "no model", {"--output_dir", "o", "--do_train"});
  add(Script::glue, "an unknown task of GLUE",
      {"--model_name_or_path", "m", "--output_dir", "o", "--do_eval", "--task_name", "stt2"});
  ner("an unknown flag", {"--do_trian"});
  ner("a word without a flag", {"stray"});
  ner("a flag without its value", {"--seed"});
  ner("neither true nor false", {"--do_eval", "maybe"});
  ner("data to download", {"--do_train", "--dataset_name", "conll2003"});
  ner("fp16 and bf16", {"--do_train", "--bf16", "--fp16"});
  ner("other tags", {"--do_train", "--task_name", "pos"});
  ner("steps that are no number", {"--do_train", "--max_steps", "abc"});
  ner("an unknown optimizer", {"--do_train", "--optim", "adamw_bnb_8bit"});
  ner("an unknown schedule", {"--do_train", "--lr_scheduler_type", "warmup_stable_decay"});
  ner("an unknown setting of a schedule", {"--do_train", "--lr_scheduler_kwargs", R"({"num_cycle": 2})"});
  ner("settings that are no object", {"--do_train", "--lr_scheduler_kwargs", "2"});
  ner("a fraction of a step", {"--do_train", "--warmup_steps", "1.5"});
  ner("an interval that is a fraction of a step", {"--do_train", "--logging_steps", "1.5"});
  ner("an unknown strategy", {"--do_train", "--validation_file", "v", "--eval_strategy", "often"});
  ner("the best of nothing", {"--do_train", "--load_best_model_at_end"});
  ner("checkpoints of no evaluation", {"--do_train", "--save_strategy", "best"});
  ner("a setting out of range", {"--do_train", "--max_seq_length", "1"});
  all.push_back({"script: flags beside a file", [] {
                   write_file_atomic("arguments.json", "{}");
                   compat::translate_script(Script::ner, {"arguments.json", "--do_eval"});
                 }});
}

void add_flair_script(Mistakes& all) {
  const auto add = [&](const char* name, const Flags& more, const std::vector<std::string>& files = {}) {
    all.push_back({std::string("flair: ") + name, [=] {
                     for (const char* file : {"train.txt", "dev.txt", "test.txt"})
                       write_file_atomic(file, "a O\n");
                     for (const std::string& file : files) write_file_atomic(file, "a O\n");
                     Flags flags = {"--model_name_or_path", "m", "--dataset_name", "."};
                     flags.insert(flags.end(), more.begin(), more.end());
                     compat::translate_flair_script(flags);
                   }});
  };
  add("data to download", {"--dataset_name", "NER_ENGLISH_PERSON"});
  add("two files of one kind", {}, {"dev2.txt"});
  add("an unknown flag", {"--epochs", "1"});
  add("an unknown pooling", {"--subtoken_pooling", "max"});
  add("a size that is no number", {"--hidden_size", "wide"});
  add("a context below 0", {"--context_size", "-1"});
  add("an unknown storage", {"--embeddings_storage_mode", "disk"});
  add("neither true nor false", {"--use_crf", "perhaps"});
  add("a rate that is no number", {"--learning_rate", "fast"});
  add("layers that are no numbers", {"--layers", "first"});
  add("several hosts", {"--num_nodes", "2"});
  add("an unknown precision", {"--precision", "8"});
  add("devices that are no numbers", {"--devices", "many"});
  add("an unknown accelerator", {"--accelerator", "tpu"});
  add("an unknown strategy", {"--strategy", "ddpp"});
}

void add_llama_script(Mistakes& all) {
  const auto add = [&](const char* name, const Flags& more) {
    all.push_back({std::string("llama: ") + name, [=] {
                     write_file_atomic("config.json", R"({"model_type": "llama", "hidden_size": 64})");
                     write_file_atomic("gpt2.json", R"({"model_type": "gpt2"})");
                     write_file_atomic("wide.json", R"({"model_type": "llama", "hidden_size": 128})");
                     write_file_atomic("text.txt", "text");
                     Flags flags = {"--model_path", "config.json", "--data_dir",
                                    "text.txt",     "--max_steps", "5000"};
                     flags.insert(flags.end(), more.begin(), more.end());
                     compat::translate_llama_script(flags);
                   }});
  };
  add("no model", {"--model_path", "None"});
  add("no data", {"--data_dir", "None"});
  add("no length", {"--max_steps", "-1"});
  add("an unknown flag", {"--max_step", "3"});
  add("a model of another family", {"--model_path", "gpt2.json"});
  add("no config.json", {"--model_path", "absent"});
  add("weights of other sizes", {"--pretrained_weight", "wide.json"});
  add("sizes for given weights", {"--pretrained_weight", "wide.json", "--num_layers", "2"});
  add("a task without records", {"--task", "open_qa"});
  add("an evaluation without data", {"--do_eval"});
  add("pipeline stages", {"--pipeline_parallel_size", "4"});
  add("divided sequences", {"--context_parallel_size", "2"});
  add("adapters", {"--enable_lora"});
  add("ROUGE", {"--golden_rouge_score_path", "golden.json"});
  add("an unknown schedule", {"--scheduler_type", "cosin"});
  add("a lowest rate of the linear schedule", {"--min_lr", "1e-5"});
  add("a lowest rate above the rate", {"--scheduler_type", "cosine", "--min_lr", "1"});
  add("a long warm-up", {"--max_steps", "100"});
  add("a long tail", {"--scheduler_type", "cosine", "--constant_steps", "4000"});
  add("a part longer than the run", {"--steps_this_run", "6000"});
  add("a flag given twice", {"--batch_size", "4", "--train_batch_size", "8"});
  add("no kept checkpoint", {"--save_checkpoint", "--num_kept_checkpoint", "0"});
  add("a step without a checkpoint", {"--resume_ckpt", "--load_step", "7"});
  add("nothing to resume", {"--resume_ckpt"});
  add("a step that is not loaded", {"--load_step", "7"});
  add("a rate that is no number", {"--lr", "fast"});
  add("a setting out of range", {"--tensor_parallel_size", "0"});
}

void add_job_scripts(Mistakes& all) {
  const auto add = [&](const char* name, const std::map<std::string, std::string>& given) {
    all.push_back({std::string("job script: ") + name, [=] {
                     write_file_atomic("config.json", "{}");
                     write_file_atomic("job.sh",
                                       "TP=8; SEQUENCES=1024\n"
                                       "DP=$((32 / $TP))\n"
                                       "STEPS=$(($SEQUENCES / $DP))\n"
                                       "torchrun --nproc_per_node 32 run_llama_nxd_ptl.py --model_path . "
                                       "--tensor_parallel_size $TP --grad_accum_usteps $STEPS\n");
                     compat::read_llama_job("job.sh", given);
                   }});
  };
  add("an unknown variable", {{"TPP", "8"}});
  add("a variable that is no number", {{"TP", "eight"}});
  add("a quotient of 0", {{"TP", "64"}});
  add("fewer sequences than groups", {{"SEQUENCES", "3"}});
  add("ranks that cannot be divided", {{"TP", "5"}});
}

}  // namespace

void add_scripts(Mistakes& all) {
  add_hf_scripts(all);
  add_flair_script(all);
  add_llama_script(all);
  add_job_scripts(all);
}

}  // namespace stretto
