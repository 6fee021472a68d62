#include <gtest/gtest.h>

#include <charconv>
#include <map>
#include <set>

#include "tests/support/assemble.h"
#include "tilewright/base/error.h"
#include "tilewright/ptx/opcode.h"

// The opcode table against an independent reader of PTX: for every row, ptxas accepts an instruction written
// from it.
namespace tw::ptx {
namespace {

bool contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

// Writes instructions of a row with operands of the right types.
class Writer {
 public:
  // Variant k picks modifiers; not every combination is legal, so several are tried.
  std::string instruction(const Form& form, int k) {
    std::string text(form.opcode);
    int bracket = 0, position = 0;
    bool there = true;
    for (const ModifierGroup& g : form.modifiers) {
      ++position;
      if (g.bracket == 0) there = true;
      else if (g.bracket != bracket) there = (k >> (g.bracket % 3)) & 1;
      bracket = g.bracket;
      if (there) text += tw::format(".{}", g.values[size_t(k * 7 + position * k) % g.values.size()]);
    }
    const OpcodeText* known = find_opcode(text);
    if (!known) return "";
    text_ = text;
    for (const auto& candidate : known->candidates) {
      if (candidate.form != &form) continue;
      bool first = true;
      for (const ResolvedOperand& r : candidate.operands) {
        if (r.spec->optional && !(k & 1)) continue;
        text += first ? " " : ", ";
        text += operand(r, known->modifier(candidate, "type"));
        first = false;
      }
      break;
    }
    return text + ";";
  }
  std::string declarations;

 private:
  std::string fresh(std::string_view type) {
    const std::string name = tw::format("%x{}", ++count_);
    declarations += tw::format(".reg .{} {};", type, name);
    return name;
  }

  // The register type that holds an instruction type.
  static std::string_view holder(const ResolvedOperand& r) {
    static const std::map<std::string_view, std::string_view> special{
        {"f16", "b16"},    {"bf16", "b16"},   {"f32x2", "b64"},   {"b8", "b16"},
        {"u8", "b16"},     {"s8", "b16"},     {"e4m3x2", "b16"},  {"e5m2x2", "b16"},
        {"e2m3x2", "b16"}, {"e3m2x2", "b16"}, {"ue8m0x2", "b16"}, {"s2f6x2", "b16"},
        {"e2m1x4", "b16"}, {"e2m1x2", "b8"},  {"e4m3", "b8"},     {"e5m2", "b8"}};
    if (r.type.empty()) return "b64";
    if (r.spec->wide) return r.type.ends_with("16") ? "b32" : "b64";
    if (const auto it = special.find(r.type); it != special.end()) return it->second;
    const auto t = type_from_name(r.type);
    return t && *t != Type::f16x2 && *t != Type::bf16x2 ? r.type : "b32";
  }

  std::string scalar(const ResolvedOperand& r) {
    if (r.spec->reg) return fresh(holder(r));
    const std::string_view n = r.spec->name;
    if (n == "size") return text_.starts_with("cp.async.") ? "16" : "128";
    if (n == "count") return "64";
    return n == "initval" || n == "sel" || n == "f" || n.starts_with("trans") ? "0" : "1";
  }

  int dimensions() const {
    for (int d = 1; d <= 5; ++d)
      if (contains(text_, tw::format(".{}d", d)))
        return contains(text_, "4.") && contains(text_, "tter4") ? 5 : d;
    return 1;
  }

  int length(const ResolvedOperand& r) const {
    if (r.count > 0) return r.count;
    if (r.spec->name == "disable") return contains(text_, "cta_group::2") ? 8 : 4;
    if (r.spec->name == "im2col") return contains(text_, "im2col::w") ? 2 : std::max(1, dimensions() - 2);
    return 1;
  }

  std::string operand(const ResolvedOperand& r, std::string_view type) {
    std::string out;
    switch (r.spec->kind) {
      case OperandKind::address:
        return tw::format("[{}]", fresh(text_.starts_with("tcgen05") ? "b32" : "b64"));
      case OperandKind::tensor: {
        const bool rows = contains(text_, "gather4") || contains(text_, "scatter4");
        const int n = rows ? 5 : dimensions();
        for (int i = 0; i < n; ++i) out += (i ? ", " : "") + fresh("b32");
        return tw::format("[{}, {{{}}}]", fresh("b64"), out);
      }
      case OperandKind::label: return "here";
      case OperandKind::callee: return "helper";
      case OperandKind::list: return "()";
      case OperandKind::value: break;
    }
    if (r.spec->count == Count::pack) {
      const std::string_view half = type == "b16"   ? "b8"
                                    : type == "b32" ? "b16"
                                    : type == "b64" ? "b32"
                                                    : "b64";
      const std::string low = fresh(half);
      return tw::format("{{{}, {}}}", low, fresh(half));
    }
    if (r.count == 0) {
      out = scalar(r);
      if (r.spec->second == OperandSpec::Second::required) out += "|" + fresh("pred");
      return out;
    }
    for (int i = 0, n = length(r); i < n; ++i) out += (i ? ", " : "") + scalar(r);
    return "{" + out + "}";
  }

  std::string text_;
  int count_ = 0;
};

TEST(Table, PtxasAcceptsAnInstructionOfEveryRow) {
  if (testing::find_cuda_tool("ptxas").empty()) GTEST_SKIP() << "ptxas is not installed";
  // In ISA 9.1, but not in ptxas 13.0.
  const auto newer = [](std::string_view row) {
    return contains(row, "s2f6x2") || row.starts_with("multimem.cp") ||
           row.starts_with("membar.proxy.kind(async)");
  };
  std::set<size_t> accepted, tried;
  for (const char* arch : {"sm_90a", "sm_100a", "sm_103a", "sm_120a"}) {
    Writer writer;
    std::map<int, size_t> row_of_line;
    std::string body;
    int line = 5;
    for (size_t i = 0; i < forms().size(); ++i) {
      const Form& form = forms()[i];
      // Branches and calls need labels and matching signatures: the corpus covers them.
      if (form.branches || form.ends || form.opcode == "call" || newer(form.text)) continue;
      tried.insert(i);
      for (int k = 0; k < 10; ++k) {
        const std::string text = writer.instruction(form, k);
        if (text.empty()) continue;
        row_of_line[++line] = i;
        body += "\n" + text;
      }
    }
    const auto assembly = testing::assemble(
        tw::format(".version 9.0\n.target {}\n.address_size 64\n.entry k() {{\n{}{}\nret; }}\n", arch,
                   writer.declarations, body),
        arch);
    std::set<int> refused;
    std::string_view log = assembly->log;
    for (size_t at = log.find("line "); at != log.npos; at = log.find("line ", at + 1)) {
      int n = 0;
      const char* end = std::from_chars(log.data() + at + 5, log.data() + log.size(), n).ptr;
      if (std::string_view(end, size_t(log.data() + log.size() - end)).starts_with("; error"))
        refused.insert(n);
    }
    EXPECT_EQ(log.find("; fatal"), log.npos) << log;
    ASSERT_GT(refused.size(), 100u);  // ptxas did look at all lines
    for (const auto& [n, row] : row_of_line)
      if (!refused.count(n)) accepted.insert(row);
  }
  for (const size_t i : tried)
    EXPECT_TRUE(accepted.count(i)) << forms()[i].text << "  " << forms()[i].operands_text;
  EXPECT_GT(tried.size(), 360u);
}

TEST(Table, RowsReadAsTheIsaWritesThem) {
  EXPECT_EQ(syntax(forms("prmt").front()), "prmt.type{.mode} d, a, b, c");
  EXPECT_EQ(syntax(forms("elect").front()), "elect.sync d|q, membermask");
}

}  // namespace
}  // namespace tw::ptx
