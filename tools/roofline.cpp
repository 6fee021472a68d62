#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/base/format.h"
#include "tilewright/machine/roofline.h"
#include "tilewright/report/roofline_chart.h"
#include "tilewright/report/table.h"
#include "tools/command.h"

namespace tw::tools {

namespace {

struct Options {
  std::string on = "b200";
  std::string dtype = "f16";
  std::optional<int64_t> m, n, k;
  bool attention = false;
  machine::AttentionShape shape{
      .batch = 1, .q_heads = 32, .kv_heads = 0, .q_length = 4096, .kv_length = 0, .head_dim = 128};
  std::optional<double> tflops, terabytes;
  std::string svg;
};

const machine::Gpu& gpu_of(std::string_view name) {
  if (name.starts_with("sim:")) name.remove_prefix(4);
  if (name.starts_with("cuda:"))
    user_error({}, "a roofline needs the model of the GPU: h100, h200, b200 or b300, not {}", name);
  return machine::gpu(name);
}

// What a kernel usually writes: 16-bit inputs keep their type, narrower ones give f16, wider ones f32.
DType output_of(DType input) {
  if (bits(input) == 16) return input;
  return bits(input) < 16 ? DType::f16 : DType::f32;
}

struct Case {
  std::string label;
  machine::Work work;
  DType dtype;
};

Case case_of(const Options& o) {
  const DType dtype = dtype_from_name(o.dtype);
  if (!o.attention) {
    const machine::GemmShape s{.m = o.m.value_or(4096),
                               .n = o.n.value_or(4096),
                               .k = o.k.value_or(4096),
                               .input = dtype,
                               .output = output_of(dtype)};
    return {format("gemm {}x{}x{} {}", s.m, s.n, s.k, o.dtype), machine::work(s), dtype};
  }
  machine::AttentionShape s = o.shape;
  s.dtype = dtype;
  if (s.kv_heads == 0) s.kv_heads = s.q_heads;
  if (s.kv_length == 0) s.kv_length = s.q_length;
  return {format("{}attention B={} Hq={} Hkv={} Lq={} Lk={} D={} {}", s.causal ? "causal " : "", s.batch,
                 s.q_heads, s.kv_heads, s.q_length, s.kv_length, s.head_dim, o.dtype),
          machine::work(s), dtype};
}

// The peaks of the machine for other types, as context in the drawing.
std::vector<report::RooflineChart::Ceiling> other_ceilings(const machine::Gpu& gpu, DType main,
                                                           double main_flops) {
  std::vector<report::RooflineChart::Ceiling> out;
  for (const DType t : {DType::e2m1, DType::e4m3, DType::f16, DType::tf32, DType::f32}) {
    if (t == main) continue;
    try {
      const double flops = machine::peak(gpu, t).flops_per_second;
      if (flops != main_flops) out.push_back({std::string(name(t)), flops});
    } catch (const Error&) {  // this machine has no such path
    }
  }
  return out;
}

void one(const Session& session, const Options& o) {
  const machine::Gpu& gpu = gpu_of(o.on);
  const Case c = case_of(o);
  const bool stated = o.tflops || o.terabytes;
  machine::Peak peak = stated && o.tflops && o.terabytes ? machine::peak(*o.tflops, *o.terabytes)
                                                         : machine::peak(gpu, c.dtype);
  if (o.tflops) peak.flops_per_second = *o.tflops * 1e12;
  if (o.terabytes) peak.bytes_per_second = *o.terabytes * 1e12;
  const machine::Roofline r = machine::roofline(c.work, peak);

  if (!o.svg.empty()) {
    report::RooflineChart chart{.title = format("Roofline of {}, {}", gpu.name, o.dtype),
                                .ceilings = {{o.dtype, peak.flops_per_second}},
                                .bytes_per_second = peak.bytes_per_second,
                                .points = {{c.label, c.work.intensity()}}};
    if (!stated)
      for (auto& ceiling : other_ceilings(gpu, c.dtype, peak.flops_per_second))
        chart.ceilings.push_back(ceiling);
    write_file(o.svg, report::to_svg(chart));
  }
  if (session.json) {
    print_json(nlohmann::ordered_json{{"machine", gpu.name},
                                      {"shape", c.label},
                                      {"flops", c.work.flops},
                                      {"bytes", c.work.bytes},
                                      {"intensity", c.work.intensity()},
                                      {"peak_flops_per_second", peak.flops_per_second},
                                      {"bytes_per_second", peak.bytes_per_second},
                                      {"ridge", peak.ridge()},
                                      {"bound", machine::name(r.bound)},
                                      {"attainable_flops_per_second", r.flops_per_second},
                                      {"seconds", r.seconds}});
    return;
  }
  const double share = r.flops_per_second / peak.flops_per_second;
  std::vector<std::pair<std::string, std::string>> lines{
      {"shape", c.label},
      {"machine", format("{}: {} {}, {}{}", gpu.name, report::si(peak.flops_per_second, "FLOP/s"), o.dtype,
                         report::si(peak.bytes_per_second, "B/s"), stated ? " (as stated)" : "")},
      {"work",
       format("{}, {} moved at least", report::si(c.work.flops, "FLOP"), report::si(c.work.bytes, "B"))},
      {"intensity", format("{:.4g} FLOP/byte", c.work.intensity())},
      {"ridge", format("{:.4g} FLOP/byte", peak.ridge())},
      {"bound", r.bound == machine::Bound::compute
                    ? format("compute: {:.3g} times above the ridge", c.work.intensity() / peak.ridge())
                    : format("memory: {:.3g} times below the ridge", peak.ridge() / c.work.intensity())},
      {"ceiling", format("{} ({:.3g} % of the peak)", report::si(r.flops_per_second, "FLOP/s"), 100 * share)},
      {"at best", report::seconds(r.seconds)}};
  if (!o.svg.empty()) lines.emplace_back("drawing", o.svg);
  print(report::fields(lines));
}

void all(const Session& session) {
  constexpr DType types[] = {DType::f16, DType::e4m3, DType::e2m1};
  auto json = nlohmann::ordered_json::array();
  report::Table table({{"machine"},
                       {"arch"},
                       {"type"},
                       {"peak", report::Align::right},
                       {"memory", report::Align::right},
                       {"ridge FLOP/byte", report::Align::right}});
  for (const auto& gpu : machine::gpus()) {
    for (const DType t : types) {
      if (t == DType::e2m1 && gpu.flop_per_clock_f4 == 0) continue;
      const machine::Peak p = machine::peak(gpu, t);
      table.row({std::string(gpu.name), std::string(gpu.arch), std::string(name(t)),
                 report::si(p.flops_per_second, "FLOP/s"), report::si(p.bytes_per_second, "B/s"),
                 format("{:.0f}", p.ridge())});
      json.push_back({{"machine", gpu.name},
                      {"arch", gpu.arch},
                      {"dtype", name(t)},
                      {"peak_flops_per_second", p.flops_per_second},
                      {"bytes_per_second", p.bytes_per_second},
                      {"ridge", p.ridge()}});
    }
  }
  if (session.json) {
    print_json(json);
    return;
  }
  print(table.text(report::style_for(stdout)));
  print(
      "\nA shape shows its place: tw roofline --on b200 -m 4096 -n 4096 -k 4096, or --attention (see "
      "--help).\n");
}

}  // namespace

void add_roofline(CLI::App& app, Session& session) {
  auto* command =
      add_command(app, session, "roofline", "arithmetic intensity, ridge point and ceiling of a shape");
  auto o = std::make_shared<Options>();
  command->add_option("--on", o->on, "GPU: h100, h200, b200 or b300")->capture_default_str();
  command->add_option("-m", o->m, "rows of D (gemm)");
  command->add_option("-n", o->n, "columns of D (gemm)");
  command->add_option("-k", o->k, "inner extent (gemm)");
  command->add_option("--dtype", o->dtype, "element type of the inputs")->capture_default_str();
  command->add_flag("--attention", o->attention, "forward attention instead of gemm");
  command->add_option("--batch", o->shape.batch)->capture_default_str();
  command->add_option("--heads", o->shape.q_heads, "query heads")->capture_default_str();
  command->add_option("--kv-heads", o->shape.kv_heads, "key/value heads (default: as many as query heads)");
  command->add_option("--queries", o->shape.q_length, "query length")->capture_default_str();
  command->add_option("--keys", o->shape.kv_length, "key/value length (default: the query length)");
  command->add_option("--head-dim", o->shape.head_dim)->capture_default_str();
  command->add_flag("--causal", o->shape.causal, "causal mask");
  command->add_option("--tflops", o->tflops, "peak TFLOP/s, in place of the machine's")
      ->check(CLI::PositiveNumber);
  command->add_option("--tbps", o->terabytes, "memory TB/s, in place of the machine's")
      ->check(CLI::PositiveNumber);
  command->add_option("--svg", o->svg, "also draw it to this file");
  command->callback([o, command, &session] {
    if (command->count_all() == static_cast<size_t>(1 + command->count("--json"))) return all(session);
    if (o->attention && (o->m || o->n || o->k))
      user_error({}, "-m, -n and -k describe a gemm; --attention takes --queries, --keys and the like");
    one(session, *o);
  });
}

}  // namespace tw::tools
