#include "tilewright/ptx/opcode_table.h"

// PTX ISA 9.1, chapter "Instruction Set", one row a form.
//
//   @name = a|b|c      a set of modifier words; <8..256:8> counts: m64n<8..256:8>k16
//   opcode.modifiers   operands   ; properties
//
// Modifiers: ".sat" a fixed word, ".type(a|b)" a choice named type, ".@scope" a choice from the set of that
// name and named like it, "{...}" there or not, as a whole. Operands, separated by commas:
//   =d:type   written        +d:type  read and written       d:type  read
//   [a]       an address whose memory is read; [=a] written; [+a] both; [.a] neither
//   <a>       a tensor map with coordinates; <=a> written
//   :type     a modifier group or a type; :wide(type) twice as wide; none: any
//   *vec *num *pack *any *4 ...  a vector, enum Count
//   |q ||q    "p|q" possible, required: the second is a predicate
//   /_ sink allowed  /s symbol allowed  /% special register allowed  /r register only  /i constant only  /!
//   may be negated ?         may be left out; "?a|b" there exactly when modifier a or b is
// Properties: branches, ends, and the architectures: sm_90 that one and later; sm_90a the same with
// architecture features; wgmma sm_90a alone; tcgen05 sm_100a to sm_110a. Kinds: &name a label, *name a
// callee, (name) a list.
namespace tw::ptx {

const char* const opcode_rows = R"(
@int = u16|u32|u64|s16|s32|s64
@bits = b16|b32|b64
@any = b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64
@mem = b8|b16|b32|b64|b128|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64
@cvt = u8|u16|u32|u64|s8|s16|s32|s64|bf16|f16|f32|f64
@rnd = rn|rz|rm|rp
@us32 = u32|s32
@cmp = eq|ne|lt|le|gt|ge|lo|ls|hi|hs|equ|neu|ltu|leu|gtu|geu|num|nan
@bool = and|or|xor
@scope = cta|cluster|gpu|sys
@l1 = L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate
@l2 = L2::evict_normal|L2::evict_first|L2::evict_last
@prefetch = L2::64B|L2::128B|L2::256B
@cta = shared|shared::cta
@anyshared = shared|shared::cta|shared::cluster
@space = const|global|local|param|param::entry|param::func|shared|shared::cta|shared::cluster
@dim = 1d|2d|3d|4d|5d
@group = cta_group::1|cta_group::2
@bytes = mbarrier::complete_tx::bytes

# Integer Arithmetic Instructions
add.type(@int|u16x2|s16x2)              =d:type, a:type, b:type
add.sat.type(s32)                       =d:type, a:type, b:type
sub.type(@int)                          =d:type, a:type, b:type
sub.sat.type(s32)                       =d:type, a:type, b:type
mul.mode(hi|lo).type(@int)              =d:type, a:type, b:type
mul.mode(wide).type(u16|u32|s16|s32)    =d:wide(type), a:type, b:type
mad.mode(hi|lo).type(@int)              =d:type, a:type, b:type, c:type
mad.mode(wide).type(u16|u32|s16|s32)    =d:wide(type), a:type, b:type, c:wide(type)
mad.mode(hi).sat.type(s32)              =d:type, a:type, b:type, c:type
mul24.mode(hi|lo).type(@us32)           =d:type, a:type, b:type
mad24.mode(hi|lo).type(@us32)           =d:type, a:type, b:type, c:type
mad24.mode(hi).sat.type(s32)            =d:type, a:type, b:type, c:type
sad.type(@int)                          =d:type, a:type, b:type, c:type
div.type(@int)                          =d:type, a:type, b:type
rem.type(@int)                          =d:type, a:type, b:type
abs.type(s16|s32|s64)                   =d:type, a:type
neg.type(s16|s32|s64)                   =d:type, a:type
min.type(@int|u16x2|s16x2)              =d:type, a:type, b:type
min.relu.type(s16x2|s32)                =d:type, a:type, b:type  ; sm_90
max.type(@int|u16x2|s16x2)              =d:type, a:type, b:type
max.relu.type(s16x2|s32)                =d:type, a:type, b:type  ; sm_90
popc.type(b32|b64)                      =d:u32, a:type
clz.type(b32|b64)                       =d:u32, a:type
bfind{.shiftamt}.type(u32|u64|s32|s64)  =d:u32, a:type
fns.type(b32)                           =d:b32, mask:b32, base:b32, offset:s32
brev.type(b32|b64)                      =d:type, a:type
bfe.type(u32|u64|s32|s64)               =d:type, a:type, b:u32, c:u32
bfi.type(b32|b64)                       =f:type, a:type, b:type, c:u32, d:u32
szext.mode(clamp|wrap).type(@us32)      =d:type, a:type, b:u32
bmsk.mode(clamp|wrap).type(b32)         =d:type, a:u32, b:u32
dp4a.atype(@us32).btype(@us32)          =d:b32, a:b32, b:b32, c:b32
dp2a.mode(lo|hi).atype(@us32).btype(@us32)  =d:b32, a:b32, b:b32, c:b32

# Extended-Precision Integer Arithmetic Instructions
add.cc.type(u32|s32|u64|s64)            =d:type, a:type, b:type
addc{.cc}.type(u32|s32|u64|s64)         =d:type, a:type, b:type
sub.cc.type(u32|s32|u64|s64)            =d:type, a:type, b:type
subc{.cc}.type(u32|s32|u64|s64)         =d:type, a:type, b:type
mad.mode(hi|lo).cc.type(u32|s32|u64|s64)     =d:type, a:type, b:type, c:type
madc.mode(hi|lo){.cc}.type(u32|s32|u64|s64)  =d:type, a:type, b:type, c:type

# Floating-Point, Half Precision and Mixed Precision Instructions
testp.op(finite|infinite|number|notanumber|normal|subnormal).type(f32|f64)  =p:pred, a:type
copysign.type(f32|f64)                  =d:type, a:type, b:type
add{.@rnd}{.ftz}{.sat}.type(f32)        =d:type, a:type, b:type
add{.@rnd}{.ftz}.type(f32x2)            =d:type, a:type, b:type  ; sm_100
add{.@rnd}.type(f64)                    =d:type, a:type, b:type
add{.rnd(rn)}{.ftz}{.sat}.type(f16|f16x2)    =d:type, a:type, b:type
add{.rnd(rn)}.type(bf16|bf16x2)         =d:type, a:type, b:type  ; sm_90
add{.@rnd}{.sat}.type(f32).atype(f16|bf16)   =d:f32, a:atype, c:f32  ; sm_100
sub{.@rnd}{.ftz}{.sat}.type(f32)        =d:type, a:type, b:type
sub{.@rnd}{.ftz}.type(f32x2)            =d:type, a:type, b:type  ; sm_100
sub{.@rnd}.type(f64)                    =d:type, a:type, b:type
sub{.rnd(rn)}{.ftz}{.sat}.type(f16|f16x2)    =d:type, a:type, b:type
sub{.rnd(rn)}.type(bf16|bf16x2)         =d:type, a:type, b:type  ; sm_90
sub{.@rnd}{.sat}.type(f32).atype(f16|bf16)   =d:f32, a:atype, c:f32  ; sm_100
mul{.@rnd}{.ftz}{.sat}.type(f32)        =d:type, a:type, b:type
mul{.@rnd}{.ftz}.type(f32x2)            =d:type, a:type, b:type  ; sm_100
mul{.@rnd}.type(f64)                    =d:type, a:type, b:type
mul{.rnd(rn)}{.ftz}{.sat}.type(f16|f16x2)    =d:type, a:type, b:type
mul{.rnd(rn)}.type(bf16|bf16x2)         =d:type, a:type, b:type  ; sm_90
fma.@rnd{.ftz}{.sat}.type(f32)          =d:type, a:type, b:type, c:type
fma.@rnd{.ftz}.type(f32x2)              =d:type, a:type, b:type, c:type  ; sm_100
fma.@rnd.type(f64)                      =d:type, a:type, b:type, c:type
fma.rnd(rn){.ftz}{.sat}.type(f16|f16x2)      =d:type, a:type, b:type, c:type
fma.rnd(rn){.ftz}.relu.type(f16|f16x2)  =d:type, a:type, b:type, c:type
fma.rnd(rn){.relu}.type(bf16|bf16x2)    =d:type, a:type, b:type, c:type
fma.rnd(rn).oob{.relu}.type(f16|f16x2|bf16|bf16x2)  =d:type, a:type, b:type, c:type  ; sm_90
fma.@rnd{.sat}.type(f32).abtype(f16|bf16)    =d:f32, a:abtype, b:abtype, c:f32  ; sm_100
mad.@rnd{.ftz}{.sat}.type(f32)          =d:type, a:type, b:type, c:type
mad.@rnd.type(f64)                      =d:type, a:type, b:type, c:type
div.mode(approx|full|rn|rz|rm|rp){.ftz}.type(f32)  =d:type, a:type, b:type
div.mode(@rnd).type(f64)                =d:type, a:type, b:type
abs{.ftz}.type(f32|f16|f16x2)           =d:type, a:type
abs.type(f64|bf16|bf16x2)               =d:type, a:type
neg{.ftz}.type(f32|f16|f16x2)           =d:type, a:type
neg.type(f64|bf16|bf16x2)               =d:type, a:type
min{.ftz}{.NaN}{.xorsign.abs}.type(f32|f16|f16x2)  =d:type, a:type, b:type
min{.NaN}{.xorsign.abs}.type(bf16|bf16x2)    =d:type, a:type, b:type
min{.ftz}{.NaN}{.abs}.type(f32)         =d:type, a:type, b:type, c:type  ; sm_100
min.type(f64)                           =d:type, a:type, b:type
max{.ftz}{.NaN}{.xorsign.abs}.type(f32|f16|f16x2)  =d:type, a:type, b:type
max{.NaN}{.xorsign.abs}.type(bf16|bf16x2)    =d:type, a:type, b:type
max{.ftz}{.NaN}{.abs}.type(f32)         =d:type, a:type, b:type, c:type  ; sm_100
max.type(f64)                           =d:type, a:type, b:type
rcp.mode(approx|rn|rz|rm|rp){.ftz}.type(f32)   =d:type, a:type
rcp.mode(@rnd).type(f64)                =d:type, a:type
rcp.mode(approx).ftz.type(f64)          =d:type, a:type
sqrt.mode(approx|rn|rz|rm|rp){.ftz}.type(f32)  =d:type, a:type
sqrt.mode(@rnd).type(f64)               =d:type, a:type
rsqrt.mode(approx){.ftz}.type(f32|f64)  =d:type, a:type
sin.mode(approx){.ftz}.type(f32)        =d:type, a:type
cos.mode(approx){.ftz}.type(f32)        =d:type, a:type
lg2.mode(approx){.ftz}.type(f32)        =d:type, a:type
ex2.mode(approx){.ftz}.type(f32)        =d:type, a:type
ex2.mode(approx).type(f16|f16x2)        =d:type, a:type
ex2.mode(approx).ftz.type(bf16|bf16x2)  =d:type, a:type  ; sm_90
tanh.mode(approx).type(f32|f16|f16x2|bf16|bf16x2)  =d:type, a:type

# Comparison and Selection Instructions
set.@cmp{.@bool}{.ftz}.dtype(u32|s32|f32|f16|bf16|u16|s16|f16x2|bf16x2).stype(@any|f16|bf16|f16x2|bf16x2)  =d:dtype, a:stype, b:stype, c:pred/!?and|or|xor
setp.@cmp{.@bool}{.ftz}.type(@any|f16|bf16)  =p:pred|q/_, a:type, b:type, c:pred/!?and|or|xor
setp.@cmp{.@bool}{.ftz}.type(f16x2|bf16x2)   =p:pred||q/_, a:type, b:type, c:pred/!?and|or|xor
selp.type(@any)                         =d:type, a:type, b:type, c:pred/!
slct.type(@any).ctype(s32)              =d:type, a:type, b:type, c:ctype
slct{.ftz}.type(@any).ctype(f32)        =d:type, a:type, b:type, c:ctype

# Logic and Shift Instructions
and.type(@bits|pred)                    =d:type, a:type/!, b:type/!
or.type(@bits|pred)                     =d:type, a:type/!, b:type/!
xor.type(@bits|pred)                    =d:type, a:type/!, b:type/!
not.type(@bits|pred)                    =d:type, a:type/!
cnot.type(@bits)                        =d:type, a:type
lop3.type(b32)                          =d:type, a:type, b:type, c:type, immLut:u32/i
lop3.@bool.type(b32)                    =d:type||p/_, a:type, b:type, c:type, immLut:u32/i, q:pred/!
shf.dir(l|r).mode(clamp|wrap).type(b32) =d:type, a:type, b:type, c:u32
shl.type(@bits)                         =d:type, a:type, b:u32
shr.type(@bits|@int)                    =d:type, a:type, b:u32

# Data Movement and Conversion Instructions
mov.type(@any|b128|pred)   =d:type, a:type/s/%/!
mov.type(b16|b32|b64|b128)              =d:type, a:type*pack
mov.type(b16|b32|b64|b128)              =d:type*pack/_, a:type
shfl.sync.mode(up|down|bfly|idx).type(b32)   =d:type|p/_, a:type, b:u32, c:u32, membermask:u32
prmt.type(b32){.mode(f4e|b4e|rc8|ecl|ecr|rc16)}  =d:type, a:type, b:type, c:u32
ld{.sem(weak)}{.@space}{.cop(ca|cg|cs|lu|cv)}{.@l1}{.@l2}{.L2::cache_hint}{.@prefetch}{.vec(v2|v4|v8)}.type(@mem)  =d:type*vec/_, [a], policy:b64?L2::cache_hint
ld.sem(volatile){.@space}{.@prefetch}{.vec(v2|v4|v8)}.type(@mem)  =d:type*vec/_, [a]
ld.sem(relaxed|acquire).@scope{.@space}{.@l1}{.@l2}{.L2::cache_hint}{.@prefetch}{.vec(v2|v4|v8)}.type(@mem)  =d:type*vec/_, [a], policy:b64?L2::cache_hint
ld.mmio.sem(relaxed).scope(sys){.space(global)}.type(@mem)        =d:type, [a]
ld.space(global){.cop(ca|cg|cs)}.nc{.@l1}{.@l2}{.L2::cache_hint}{.@prefetch}{.vec(v2|v4|v8)}.type(@mem)  =d:type*vec/_, [a], policy:b64?L2::cache_hint
ldu{.space(global)}{.vec(v2|v4)}.type(@mem)                       =d:type*vec/_, [a]
st{.sem(weak)}{.@space}{.cop(wb|cg|cs|wt)}{.@l1}{.@l2}{.L2::cache_hint}{.vec(v2|v4|v8)}.type(@mem)  [=a], b:type*vec, policy:b64?L2::cache_hint
st.sem(volatile){.@space}{.vec(v2|v4|v8)}.type(@mem)              [=a], b:type*vec
st.sem(relaxed|release).@scope{.@space}{.@l1}{.@l2}{.L2::cache_hint}{.vec(v2|v4|v8)}.type(@mem)  [=a], b:type*vec, policy:b64?L2::cache_hint
st.mmio.sem(relaxed).scope(sys){.space(global)}.type(@mem)        [=a], b:type
st.async{.sem(weak)}{.space(shared::cluster)}.completion(@bytes){.vec(v2|v4)}.type(b32|b64|u32|u64|s32|s64|f32|f64)   [=a], b:type*vec, [+mbar]  ; sm_90
st.async.scope(cluster){.space(shared::cluster)}.completion(@bytes){.vec(v2|v4)}.type(b32|b64|u32|u64|s32|s64|f32|f64)  [=a], b:type*vec, [+mbar]  ; sm_90
st.async{.mmio}.sem(release).scope(gpu|sys){.space(global)}.type(b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64)  [=a], b:type  ; sm_100
st.bulk{.sem(weak)}{.space(shared::cta)}    [=a], size:u64, initval:u64/i  ; sm_100
multimem.ld_reduce{.sem(relaxed|acquire|weak)}{.@scope}{.space(global)}.op(min|max|add|and|or|xor).type(b32|b64|u32|u64|s32|s64)  =d:type, [a]  ; sm_90
multimem.ld_reduce{.sem(relaxed|acquire|weak)}{.@scope}{.space(global)}.op(min|max|add){.acc(acc::f32|acc::f16)}{.vec(v2|v4|v8)}.type(f16|f16x2|bf16|bf16x2|f32|f64|e5m2|e5m2x2|e5m2x4|e4m3|e4m3x2|e4m3x4)  =d:type*vec, [a]  ; sm_90
multimem.st{.sem(relaxed|release|weak)}{.@scope}{.space(global)}{.vec(v2|v4|v8)}.type(b32|b64|u32|u64|s32|s64|f16|f16x2|bf16|bf16x2|f32|f64|e5m2|e5m2x2|e5m2x4|e4m3|e4m3x2|e4m3x4)  [=a], b:type*vec  ; sm_90
multimem.red{.sem(relaxed|release)}{.@scope}{.space(global)}.op(min|max|add|and|or|xor).type(b32|b64|u32|u64|s32|s64)  [+a], b:type  ; sm_90
multimem.red{.sem(relaxed|release)}{.@scope}{.space(global)}.op(add){.vec(v2|v4|v8)}.type(f16|f16x2|bf16|bf16x2|f32|f64)  [+a], b:type*vec  ; sm_90
multimem.cp.async.bulk.dst(global).src(shared::cta).completion(bulk_group){.cp_mask}  [=dstMem], [srcMem], size:u32, byteMask:b16?cp_mask  ; sm_90
multimem.cp.reduce.async.bulk.dst(global).src(shared::cta).completion(bulk_group).op(and|or|xor|add|inc|dec|min|max).type(f16|bf16|b32|u32|s32|b64|u64|s64|f32|f64)  [+dstMem], [srcMem], size:u32  ; sm_90
multimem.cp.reduce.async.bulk.dst(global).src(shared::cta).completion(bulk_group).op(add).noftz.type(f16|bf16)  [+dstMem], [srcMem], size:u32  ; sm_90
prefetch{.space(global|local)}.level(L1|L2)            [.a]
prefetch.space(global).level(L2::evict_last|L2::evict_normal)  [.a]
prefetch{.space(const|param)}.tensormap                [.a]  ; sm_90
prefetchu.level(L1)                                    [.a]
applypriority{.space(global)}.level(L2::evict_normal)  [.a], size:u32/i
discard{.space(global)}.level(L2)                      [=a], size:u32/i
createpolicy.range{.space(global)}.primary(L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged){.secondary(L2::evict_first|L2::evict_unchanged)}.type(b64)  =policy:b64, [.a], primary:u32, total:u32
createpolicy.fractional.primary(L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged){.secondary(L2::evict_first|L2::evict_unchanged)}.type(b64)  =policy:b64, fraction:f32?
createpolicy.cvt.L2.type(b64)                          =policy:b64, property:b64
isspacep.@space                                        =p:pred, a
cvta{.to}.@space.type(u32|u64)                         =p:type, a:type/s
cvt{.rnd(rni|rzi|rmi|rpi|rn|rz|rm|rp)}{.ftz}{.sat}.dtype(@cvt).atype(@cvt)  =d:dtype, a:atype/%
cvt.rnd(rn|rz){.relu}{.satfinite}.dtype(f16|bf16).atype(f32)      =d:dtype, a:atype
cvt.rnd(rn|rz){.relu}{.satfinite}.dtype(f16x2|bf16x2).atype(f32)  =d:dtype, a:atype, b:atype
cvt.rnd(rs){.relu}{.satfinite}.dtype(f16x2|bf16x2).atype(f32)     =d:dtype, a:atype, b:atype, rbits:b32  ; sm_100a
cvt.rnd(rna){.satfinite}.dtype(tf32).atype(f32)                   =d:dtype, a:atype
cvt.rnd(rn|rz){.satfinite}{.relu}.dtype(tf32).atype(f32)          =d:dtype, a:atype  ; sm_90
cvt.rnd(rn).satfinite{.relu}.dtype(e4m3x2|e5m2x2).atype(f32)      =d:dtype, a:atype, b:atype
cvt.rnd(rn).satfinite{.relu}.dtype(e4m3x2|e5m2x2).atype(f16x2)    =d:dtype, a:atype
cvt.rnd(rn){.relu}.dtype(f16x2).atype(e4m3x2|e5m2x2)              =d:dtype, a:atype
cvt.rnd(rs){.relu}.satfinite.dtype(e4m3x4|e5m2x4|e2m1x4|e2m3x4|e3m2x4).atype(f32)  =d:dtype, a:atype*4, rbits:b32  ; sm_100a
cvt.rnd(rn).satfinite{.relu}.dtype(e2m1x2|e2m3x2|e3m2x2).atype(f32)                =d:dtype, a:atype, b:atype  ; sm_100a
cvt.rnd(rn).satfinite{.relu}.dtype(e2m1x2|e2m3x2|e3m2x2|e4m3x2|e5m2x2).atype(f16x2|bf16x2)  =d:dtype, a:atype  ; sm_100a
cvt.rnd(rn){.relu}.dtype(f16x2).atype(e2m1x2|e2m3x2|e3m2x2)       =d:dtype, a:atype  ; sm_100a
cvt.rnd(rz|rp){.satfinite}.dtype(ue8m0x2).atype(f32)              =d:dtype, a:atype, b:atype  ; sm_100a
cvt.rnd(rz|rp){.satfinite}.dtype(ue8m0x2).atype(bf16x2)           =d:dtype, a:atype  ; sm_100a
cvt.rnd(rn).dtype(bf16x2).atype(ue8m0x2)                          =d:dtype, a:atype  ; sm_100a
cvt.rnd(rn).satfinite{.relu}{.scaled::n2::ue8m0}.dtype(s2f6x2).atype(f32)     =d:dtype, a:atype, b:atype, scale:b16?scaled::n2::ue8m0  ; sm_100a
cvt.rnd(rn).satfinite{.relu}{.scaled::n2::ue8m0}.dtype(s2f6x2).atype(bf16x2)  =d:dtype, a:atype, scale:b16?scaled::n2::ue8m0  ; sm_100a
cvt.rnd(rn){.satfinite}{.relu}{.scaled::n2::ue8m0}.dtype(bf16x2).atype(s2f6x2)  =d:dtype, a:atype, scale:b16?scaled::n2::ue8m0  ; sm_100a
cvt.pack.sat.dtype(u16|s16).atype(s32)                            =d:b32, a:atype, b:atype
cvt.pack.sat.dtype(u2|s2|u4|s4|u8|s8).atype(s32).ctype(b32)       =d:b32, a:atype, b:atype, c:ctype
mapa{.space(shared::cluster)}.type(u32|u64)            =d:type, a:type/s, b:u32  ; sm_90
getctarank{.space(shared::cluster)}.type(u32|u64)      =d:u32, a:type/s  ; sm_90
cp.async.cop(ca|cg).dst(@cta).src(global){.L2::cache_hint}{.@prefetch}  [=dst], [src], size:u32/i, ignore:pred/r/!, policy:b64?L2::cache_hint
cp.async.cop(ca|cg).dst(@cta).src(global){.L2::cache_hint}{.@prefetch}  [=dst], [src], size:u32/i, srcsize:u32?, policy:b64?L2::cache_hint
cp.async.commit_group
cp.async.wait_group                                    n:u32/i
cp.async.wait_all
cp.async.bulk.dst(shared::cta|shared::cluster).src(global).completion(@bytes){.multicast::cluster}{.L2::cache_hint}  [=dstMem], [srcMem], size:u32, [+mbar], ctaMask:b16?multicast::cluster, policy:b64?L2::cache_hint  ; sm_90
cp.async.bulk.dst(shared::cluster).src(shared::cta).completion(@bytes)  [=dstMem], [srcMem], size:u32, [+mbar]  ; sm_90
cp.async.bulk.dst(global).src(shared::cta).completion(bulk_group){.L2::cache_hint}{.cp_mask}  [=dstMem], [srcMem], size:u32, policy:b64?L2::cache_hint, byteMask:b16?cp_mask  ; sm_90
cp.async.bulk.prefetch.L2.src(global){.L2::cache_hint}  [.srcMem], size:u32, policy:b64?L2::cache_hint  ; sm_90
cp.async.bulk.commit_group                             ; sm_90
cp.async.bulk.wait_group{.read}                        n:u32/i  ; sm_90
cp.reduce.async.bulk.dst(shared::cluster).src(shared::cta).completion(@bytes).op(and|or|xor|add|inc|dec|min|max).type(b32|u32|s32|b64|u64)  [+dstMem], [srcMem], size:u32, [+mbar]  ; sm_90
cp.reduce.async.bulk.dst(global).src(shared::cta).completion(bulk_group){.L2::cache_hint}.op(and|or|xor|add|inc|dec|min|max).type(f16|bf16|b32|u32|s32|b64|u64|s64|f32|f64)  [+dstMem], [srcMem], size:u32, policy:b64?L2::cache_hint  ; sm_90
cp.reduce.async.bulk.dst(global).src(shared::cta).completion(bulk_group){.L2::cache_hint}.op(add).noftz.type(f16|bf16)  [+dstMem], [srcMem], size:u32, policy:b64?L2::cache_hint  ; sm_90
cp.async.bulk.tensor.@dim.dst(shared::cta|shared::cluster).src(global){.load(tile|tile::gather4)}.completion(@bytes){.multicast::cluster}{.@group}{.L2::cache_hint}  [=dstMem], <tensor>, [+mbar], ctaMask:b16?multicast::cluster, policy:b64?L2::cache_hint  ; sm_90
cp.async.bulk.tensor.@dim.dst(shared::cta|shared::cluster).src(global).load(im2col|im2col::w|im2col::w::128).completion(@bytes){.multicast::cluster}{.@group}{.L2::cache_hint}  [=dstMem], <tensor>, [+mbar], im2col:b16*any, ctaMask:b16?multicast::cluster, policy:b64?L2::cache_hint  ; sm_90
cp.async.bulk.tensor.@dim.dst(global).src(shared::cta){.load(tile|tile::scatter4|im2col_no_offs)}.completion(bulk_group){.L2::cache_hint}  <=tensor>, [srcMem], policy:b64?L2::cache_hint  ; sm_90
cp.reduce.async.bulk.tensor.@dim.dst(global).src(shared::cta).op(add|min|max|inc|dec|and|or|xor){.load(tile|im2col_no_offs)}.completion(bulk_group){.L2::cache_hint}  <+tensor>, [srcMem], policy:b64?L2::cache_hint  ; sm_90
cp.async.bulk.prefetch.tensor.@dim.L2.src(global){.load(tile|tile::gather4)}{.L2::cache_hint}  <.tensor>, policy:b64?L2::cache_hint  ; sm_90
cp.async.bulk.prefetch.tensor.@dim.L2.src(global).load(im2col|im2col::w|im2col::w::128){.L2::cache_hint}  <.tensor>, im2col:b16*any, policy:b64?L2::cache_hint  ; sm_90
tensormap.replace.load(tile).field(global_address|rank){.space(global|shared::cta)}.b1024.type(b32|b64)  [=addr], value:type  ; sm_90a
tensormap.replace.load(tile).field(elemtype|interleave_layout|swizzle_mode|swizzle_atomicity|fill_mode){.space(global|shared::cta)}.b1024.type(b32)  [=addr], value:type/i  ; sm_90a
tensormap.replace.load(tile).field(box_dim|global_dim|global_stride|element_stride){.space(global|shared::cta)}.b1024.type(b32|b64)  [=addr], ord:u32/i, value:type  ; sm_90a
tensormap.cp_fenceproxy.dst(global).src(shared::cta).proxy(tensormap::generic).sem(release).@scope.sync.aligned  [=dst], [src], size:u32/i  ; sm_90

# Control Flow Instructions
bra{.uni}                               &target  ; branches
brx.idx{.uni}                           index:u32, &targets  ; branches
call{.uni}                              (results), *function, (arguments)
call{.uni}                              (results), *function, (arguments), &prototype
call{.uni}                              *function, (arguments)
call{.uni}                              *function, (arguments), &prototype
call{.uni}                              *function
call{.uni}                              *function, &prototype
ret{.uni}                               ; ends
exit                                    ; ends

# Parallel Synchronization and Communication Instructions
bar{.cta}.sync                          a:u32, b:u32?
bar{.cta}.arrive                        a:u32, b:u32
bar{.cta}.red.op(popc).type(u32)        =d:u32, a:u32, b:u32?, c:pred/r/!
bar{.cta}.red.op(and|or).type(pred)     =p:pred, a:u32, b:u32?, c:pred/r/!
barrier{.cta}.sync{.aligned}            a:u32, b:u32?
barrier{.cta}.arrive{.aligned}          a:u32, b:u32
barrier{.cta}.red.op(popc){.aligned}.type(u32)     =d:u32, a:u32, b:u32?, c:pred/r/!
barrier{.cta}.red.op(and|or){.aligned}.type(pred)  =p:pred, a:u32, b:u32?, c:pred/r/!
bar.warp.sync                           membermask:u32
barrier.cluster.arrive{.sem(release|relaxed)}{.aligned}  ; sm_90
barrier.cluster.wait{.sem(acquire)}{.aligned}            ; sm_90
fence{.sem(sc|acq_rel|acquire|release)}.@scope
fence.sem(acquire).restrict(sync_restrict::shared::cluster).scope(cluster)  ; sm_90
fence.sem(release).restrict(sync_restrict::shared::cta).scope(cluster)      ; sm_90
fence.op(mbarrier_init).sem(release).scope(cluster)      ; sm_90
fence.proxy.kind(alias)
fence.proxy.kind(async){.space(global|shared::cta|shared::cluster)}  ; sm_90
fence.proxy.kind(tensormap::generic).sem(release).@scope   ; sm_90
fence.proxy.kind(tensormap::generic).sem(acquire).@scope   [.addr], size:u32/i  ; sm_90
fence.proxy.kind(async::generic).sem(acquire).restrict(sync_restrict::shared::cluster).scope(cluster)  ; sm_90
fence.proxy.kind(async::generic).sem(release).restrict(sync_restrict::shared::cta).scope(cluster)      ; sm_90
membar.level(cta|gl|sys)
membar.proxy.kind(alias)
membar.proxy.kind(async){.space(global|shared::cta|shared::cluster)}  ; sm_90
@asem = relaxed|acquire|release|acq_rel
@aspace = global|shared|shared::cta|shared::cluster
atom{.sem(@asem)}{.@scope}{.space(@aspace)}.op(and|or|xor|exch){.L2::cache_hint}.type(b32|b64)  =d:type/_, [+a], b:type, policy:b64?L2::cache_hint
atom{.sem(@asem)}{.@scope}{.space(@aspace)}.op(add){.L2::cache_hint}.type(u32|u64|s32|f32|f64)  =d:type/_, [+a], b:type, policy:b64?L2::cache_hint
atom{.sem(@asem)}{.@scope}{.space(@aspace)}.op(inc|dec){.L2::cache_hint}.type(u32)  =d:type/_, [+a], b:type, policy:b64?L2::cache_hint
atom{.sem(@asem)}{.@scope}{.space(@aspace)}.op(min|max){.L2::cache_hint}.type(u32|u64|s32|s64)  =d:type/_, [+a], b:type, policy:b64?L2::cache_hint
atom{.sem(@asem)}{.@scope}{.space(@aspace)}.op(cas).type(b16|b32|b64|b128)   =d:type/_, [+a], b:type, c:type
atom{.sem(@asem)}{.@scope}{.space(@aspace)}.op(exch){.L2::cache_hint}.type(b128)             =d:type/_, [+a], b:type, policy:b64?L2::cache_hint  ; sm_90
atom{.sem(@asem)}{.@scope}{.space(@aspace)}.op(add).noftz{.L2::cache_hint}.type(f16|f16x2|bf16|bf16x2)  =d:type/_, [+a], b:type, policy:b64?L2::cache_hint
atom{.sem(@asem)}{.@scope}{.space(global)}.op(add){.L2::cache_hint}.vec(v2|v4).type(f32)     =d:type*vec/_, [+a], b:type*vec, policy:b64?L2::cache_hint  ; sm_90
atom{.sem(@asem)}{.@scope}{.space(global)}.op(add|min|max).noftz{.L2::cache_hint}.vec(v2|v4|v8).type(f16|bf16)  =d:type*vec/_, [+a], b:type*vec, policy:b64?L2::cache_hint  ; sm_90
atom{.sem(@asem)}{.@scope}{.space(global)}.op(add|min|max).noftz{.L2::cache_hint}.vec(v2|v4).type(f16x2|bf16x2)  =d:type*vec/_, [+a], b:type*vec, policy:b64?L2::cache_hint  ; sm_90
red{.sem(relaxed|release)}{.@scope}{.space(@aspace)}.op(and|or|xor){.L2::cache_hint}.type(b32|b64)  [+a], b:type, policy:b64?L2::cache_hint
red{.sem(relaxed|release)}{.@scope}{.space(@aspace)}.op(add){.L2::cache_hint}.type(u32|u64|s32|f32|f64)  [+a], b:type, policy:b64?L2::cache_hint
red{.sem(relaxed|release)}{.@scope}{.space(@aspace)}.op(inc|dec){.L2::cache_hint}.type(u32)  [+a], b:type, policy:b64?L2::cache_hint
red{.sem(relaxed|release)}{.@scope}{.space(@aspace)}.op(min|max){.L2::cache_hint}.type(u32|u64|s32|s64)  [+a], b:type, policy:b64?L2::cache_hint
red{.sem(relaxed|release)}{.@scope}{.space(@aspace)}.op(add).noftz{.L2::cache_hint}.type(f16|f16x2|bf16|bf16x2)  [+a], b:type, policy:b64?L2::cache_hint
red{.sem(relaxed|release)}{.@scope}{.space(global)}.op(add){.L2::cache_hint}.vec(v2|v4).type(f32)                [+a], b:type*vec, policy:b64?L2::cache_hint  ; sm_90
red{.sem(relaxed|release)}{.@scope}{.space(global)}.op(add|min|max).noftz{.L2::cache_hint}.vec(v2|v4|v8).type(f16|bf16)   [+a], b:type*vec, policy:b64?L2::cache_hint  ; sm_90
red{.sem(relaxed|release)}{.@scope}{.space(global)}.op(add|min|max).noftz{.L2::cache_hint}.vec(v2|v4).type(f16x2|bf16x2)  [+a], b:type*vec, policy:b64?L2::cache_hint  ; sm_90
red.async.sem(relaxed).scope(cluster){.space(shared::cluster)}.completion(@bytes).op(inc|dec).type(u32)          [+a], b:type, [+mbar]  ; sm_90
red.async.sem(relaxed).scope(cluster){.space(shared::cluster)}.completion(@bytes).op(min|max).type(u32|s32)      [+a], b:type, [+mbar]  ; sm_90
red.async.sem(relaxed).scope(cluster){.space(shared::cluster)}.completion(@bytes).op(and|or|xor).type(b32)       [+a], b:type, [+mbar]  ; sm_90
red.async.sem(relaxed).scope(cluster){.space(shared::cluster)}.completion(@bytes).op(add).type(u32|s32|u64)      [+a], b:type, [+mbar]  ; sm_90
red.async{.mmio}.sem(release).scope(gpu|cluster){.space(global)}.op(add).type(u32|s32|u64|s64)                   [+a], b:type  ; sm_100
vote.sync.mode(all|any|uni).type(pred)  =d:pred, a:pred/!, membermask:u32
vote.sync.mode(ballot).type(b32)        =d:b32, a:pred/!, membermask:u32
match.mode(any).sync.type(b32|b64)      =d:b32, a:type, membermask:u32
match.mode(all).sync.type(b32|b64)      =d:b32|p/_, a:type, membermask:u32
activemask.type(b32)                    =d:b32
redux.sync.op(add|min|max).type(u32|s32)     =d:type, a:type, membermask:u32
redux.sync.op(and|or|xor).type(b32)     =d:type, a:type, membermask:u32
redux.sync.op(min|max){.abs}{.NaN}.type(f32) =d:type, a:type, membermask:u32  ; sm_100a
griddepcontrol.action(launch_dependents|wait)   ; sm_90
elect.sync                              =d:b32||p/_, membermask:u32  ; sm_90
mbarrier.init{.space(@cta)}.type(b64)   [=addr], count:u32
mbarrier.inval{.space(@cta)}.type(b64)  [=addr]
mbarrier.expect_tx{.sem(relaxed).scope(cta|cluster)}{.space(@anyshared)}.type(b64)    [+addr], txCount:u32  ; sm_90
mbarrier.complete_tx{.sem(relaxed).scope(cta|cluster)}{.space(@anyshared)}.type(b64)  [+addr], txCount:u32  ; sm_90
mbarrier.arrive{.sem(release|relaxed).scope(cta|cluster)}{.space(@anyshared)}.type(b64)                =state:b64/_, [+addr], count:u32?
mbarrier.arrive.expect_tx{.sem(release|relaxed).scope(cta|cluster)}{.space(@anyshared)}.type(b64)      =state:b64/_, [+addr], txCount:u32  ; sm_90
mbarrier.arrive.noComplete{.sem(release).scope(cta)}{.space(@cta)}.type(b64)                           =state:b64/_, [+addr], count:u32
mbarrier.arrive_drop{.sem(release|relaxed).scope(cta|cluster)}{.space(@anyshared)}.type(b64)           =state:b64/_, [+addr], count:u32?
mbarrier.arrive_drop.expect_tx{.sem(release|relaxed).scope(cta|cluster)}{.space(@anyshared)}.type(b64) =state:b64/_, [+addr], txCount:u32  ; sm_90
mbarrier.arrive_drop.noComplete{.sem(release).scope(cta)}{.space(@cta)}.type(b64)                      =state:b64/_, [+addr], count:u32
mbarrier.test_wait{.sem(acquire|relaxed).scope(cta|cluster)}{.space(@cta)}.type(b64)                   =waitComplete:pred, [addr], state:b64
mbarrier.test_wait.parity{.sem(acquire|relaxed).scope(cta|cluster)}{.space(@cta)}.type(b64)            =waitComplete:pred, [addr], phaseParity:u32
mbarrier.try_wait{.sem(acquire|relaxed).scope(cta|cluster)}{.space(@cta)}.type(b64)                    =waitComplete:pred, [addr], state:b64, suspendTimeHint:u32?  ; sm_90
mbarrier.try_wait.parity{.sem(acquire|relaxed).scope(cta|cluster)}{.space(@cta)}.type(b64)             =waitComplete:pred, [addr], phaseParity:u32, suspendTimeHint:u32?  ; sm_90
mbarrier.pending_count.type(b64)        =count:u32, state:b64
cp.async.mbarrier.arrive{.noinc}{.space(@cta)}.type(b64)  [+addr]
clusterlaunchcontrol.try_cancel.async{.space(shared::cta)}.completion(@bytes){.multicast::cluster::all}.type(b128)  [=addr], [+mbar]  ; sm_100
clusterlaunchcontrol.query_cancel.is_canceled.pred.type(b128)               =p:pred, response:b128  ; sm_100
clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.type(b128)         =d:b32*4/_, response:b128  ; sm_100
clusterlaunchcontrol.query_cancel.field(get_first_ctaid::x|get_first_ctaid::y|get_first_ctaid::z).b32.type(b128)  =d:b32, response:b128  ; sm_100

# Warp Level Matrix Instructions
@layout = row|col
@wshape = m16n16k16|m8n32k16|m32n8k16
wmma.load.operand(a|b).sync.aligned.@layout.shape(@wshape){.space(global|shared|shared::cta)}.type(f16|bf16|s8|u8)  =r:b32*wmma, [p], stride:u32?
wmma.load.operand(a|b).sync.aligned.@layout.shape(m16n16k8){.space(global|shared|shared::cta)}.type(tf32)           =r:b32*wmma, [p], stride:u32?
wmma.load.operand(a|b).sync.aligned.@layout.shape(m8n8k4){.space(global|shared|shared::cta)}.type(f64)              =r:f64*wmma, [p], stride:u32?
wmma.load.operand(a|b).sync.aligned.@layout.shape(m8n8k32){.space(global|shared|shared::cta)}.type(s4|u4)           =r:b32*wmma, [p], stride:u32?
wmma.load.operand(a|b).sync.aligned.@layout.shape(m8n8k128){.space(global|shared|shared::cta)}.type(b1)             =r:b32*wmma, [p], stride:u32?
wmma.load.operand(c).sync.aligned.@layout.shape(@wshape|m16n16k8|m8n8k4|m8n8k32|m8n8k128){.space(global|shared|shared::cta)}.type(f16|f32|s32|f64)   =r*wmma, [p], stride:u32?
wmma.store.operand(d).sync.aligned.@layout.shape(@wshape|m16n16k8|m8n8k4|m8n8k32|m8n8k128){.space(global|shared|shared::cta)}.type(f16|f32|s32|f64)  [=p], r*wmma, stride:u32?
wmma.mma.sync.aligned.alayout(@layout).blayout(@layout).shape(@wshape).dtype(f16|f32).ctype(f16|f32)                =d*wmma, a:b32*wmma, b:b32*wmma, c*wmma
wmma.mma.sync.aligned.alayout(@layout).blayout(@layout).shape(@wshape).dtype(s32).atype(s8|u8).btype(s8|u8).ctype(s32){.satfinite}  =d:s32*wmma, a:b32*wmma, b:b32*wmma, c:s32*wmma
wmma.mma.sync.aligned.alayout(@layout).blayout(@layout).shape(@wshape).dtype(f32).atype(bf16).btype(bf16).ctype(f32)  =d:f32*wmma, a:b32*wmma, b:b32*wmma, c:f32*wmma
wmma.mma.sync.aligned.alayout(@layout).blayout(@layout).shape(m16n16k8).dtype(f32).atype(tf32).btype(tf32).ctype(f32)  =d:f32*wmma, a:b32*wmma, b:b32*wmma, c:f32*wmma
wmma.mma.sync.aligned.alayout(@layout).blayout(@layout).shape(m8n8k4){.@rnd}.dtype(f64).atype(f64).btype(f64).ctype(f64)  =d:f64*wmma, a:f64*wmma, b:f64*wmma, c:f64*wmma
wmma.mma.sync.aligned.alayout(row).blayout(col).shape(m8n8k32).dtype(s32).atype(s4|u4).btype(s4|u4).ctype(s32){.satfinite}  =d:s32*wmma, a:b32*wmma, b:b32*wmma, c:s32*wmma
wmma.mma.op(xor|and).popc.sync.aligned.alayout(row).blayout(col).shape(m8n8k128).dtype(s32).atype(b1).btype(b1).ctype(s32)  =d:s32*wmma, a:b32*wmma, b:b32*wmma, c:s32*wmma
@f8 = e4m3|e5m2
@f864 = e4m3|e5m2|e3m2|e2m3|e2m1
@f1632 = f16|f32
mma.sync.aligned.shape(m8n8k4).alayout(@layout).blayout(@layout).dtype(@f1632).atype(f16).btype(f16).ctype(@f1632)  =d*mma_d, a:f16x2*mma_a, b:f16x2*mma_b, c*mma_c
mma.sync.aligned.shape(m16n8k8|m16n8k16).row.col.dtype(@f1632).atype(f16).btype(f16).ctype(@f1632)     =d*mma_d, a:f16x2*mma_a, b:f16x2*mma_b, c*mma_c
mma.sync.aligned.shape(m16n8k4|m16n8k8).row.col.dtype(f32).atype(tf32).btype(tf32).ctype(f32)          =d:f32*mma_d, a:b32*mma_a, b:b32*mma_b, c:f32*mma_c
mma.sync.aligned.shape(m16n8k8|m16n8k16).row.col.dtype(f32).atype(bf16).btype(bf16).ctype(f32)         =d:f32*mma_d, a:b32*mma_a, b:b32*mma_b, c:f32*mma_c
mma.sync.aligned.shape(m16n8k16|m16n8k32).row.col.dtype(@f1632).atype(@f8).btype(@f8).ctype(@f1632)    =d*mma_d, a:b32*mma_a, b:b32*mma_b, c*mma_c
mma.sync.aligned.shape(m16n8k32).row.col.kind(kind::f8f6f4).dtype(@f1632).atype(@f864).btype(@f864).ctype(@f1632)  =d*mma_d, a:b32*mma_a, b:b32*mma_b, c*mma_c  ; sm_120a
mma.sync.aligned.shape(m16n8k64).row.col.kind(kind::mxf4).block_scale{.scale_vec(scale_vec::2X)}.dtype(f32).atype(e2m1).btype(e2m1).ctype(f32).stype(ue8m0)  =d:f32*mma_d, a:b32*mma_a, b:b32*mma_b, c:f32*mma_c, scaleA:b32, idA:b16*2, scaleB:b32, idB:b16*2  ; sm_120a
mma.sync.aligned.shape(m16n8k64).row.col.kind(kind::mxf4nvf4).block_scale.scale_vec(scale_vec::2X|scale_vec::4X).dtype(f32).atype(e2m1).btype(e2m1).ctype(f32).stype(ue8m0|ue4m3)  =d:f32*mma_d, a:b32*mma_a, b:b32*mma_b, c:f32*mma_c, scaleA:b32, idA:b16*2, scaleB:b32, idB:b16*2  ; sm_120a
mma.sync.aligned.shape(m16n8k32).row.col.kind(kind::mxf8f6f4).block_scale{.scale_vec(scale_vec::1X)}.dtype(f32).atype(@f864).btype(@f864).ctype(f32).stype(ue8m0)  =d:f32*mma_d, a:b32*mma_a, b:b32*mma_b, c:f32*mma_c, scaleA:b32, idA:b16*2, scaleB:b32, idB:b16*2  ; sm_120a
mma.sync.aligned.shape(m8n8k4|m16n8k4|m16n8k8|m16n8k16).row.col{.@rnd}.dtype(f64).atype(f64).btype(f64).ctype(f64)        =d:f64*mma_d, a:f64*mma_a, b:f64*mma_b, c:f64*mma_c
mma.sync.aligned.shape(m8n8k16|m16n8k16|m16n8k32).row.col{.satfinite}.dtype(s32).atype(u8|s8).btype(u8|s8).ctype(s32)  =d:s32*mma_d, a:b32*mma_a, b:b32*mma_b, c:s32*mma_c
mma.sync.aligned.shape(m8n8k32|m16n8k32|m16n8k64).row.col{.satfinite}.dtype(s32).atype(u4|s4).btype(u4|s4).ctype(s32)  =d:s32*mma_d, a:b32*mma_a, b:b32*mma_b, c:s32*mma_c
mma.sync.aligned.shape(m8n8k128|m16n8k128|m16n8k256).row.col.dtype(s32).atype(b1).btype(b1).ctype(s32).op(xor|and).popc  =d:s32*mma_d, a:b32*mma_a, b:b32*mma_b, c:s32*mma_c
@sp = sp|sp::ordered_metadata
mma.sparse(@sp).sync.aligned.shape(m16n8k16|m16n8k32).row.col.dtype(@f1632).atype(f16).btype(f16).ctype(@f1632)   =d*mma_d, a:f16x2*mma_a, b:f16x2*mma_b, c*mma_c, e:b32, f:u32/i
mma.sparse(@sp).sync.aligned.shape(m16n8k16|m16n8k32).row.col.dtype(f32).atype(bf16).btype(bf16).ctype(f32)       =d:f32*mma_d, a:b32*mma_a, b:b32*mma_b, c:f32*mma_c, e:b32, f:u32/i
mma.sparse(@sp).sync.aligned.shape(m16n8k8|m16n8k16).row.col.dtype(f32).atype(tf32).btype(tf32).ctype(f32)        =d:f32*mma_d, a:b32*mma_a, b:b32*mma_b, c:f32*mma_c, e:b32, f:u32/i
mma.sparse(@sp).sync.aligned.shape(m16n8k64).row.col.dtype(f32).atype(@f8).btype(@f8).ctype(f32)                  =d:f32*mma_d, a:b32*mma_a, b:b32*mma_b, c:f32*mma_c, e:b32, f:u32/i
mma.sparse(sp::ordered_metadata).sync.aligned.shape(m16n8k64).row.col.kind(kind::f8f6f4).dtype(@f1632).atype(@f864).btype(@f864).ctype(@f1632)  =d*mma_d, a:b32*mma_a, b:b32*mma_b, c*mma_c, e:b32, f:u32/i  ; sm_120a
mma.sparse(sp::ordered_metadata).sync.aligned.shape(m16n8k128).row.col.kind(kind::mxf4).block_scale{.scale_vec(scale_vec::2X)}.dtype(f32).atype(e2m1).btype(e2m1).ctype(f32).stype(ue8m0)  =d:f32*mma_d, a:b32*mma_a, b:b32*mma_b, c:f32*mma_c, e:b32, f:u32/i, scaleA:b32, idA:b16*2, scaleB:b32, idB:b16*2  ; sm_120a
mma.sparse(sp::ordered_metadata).sync.aligned.shape(m16n8k128).row.col.kind(kind::mxf4nvf4).block_scale.scale_vec(scale_vec::2X|scale_vec::4X).dtype(f32).atype(e2m1).btype(e2m1).ctype(f32).stype(ue8m0|ue4m3)  =d:f32*mma_d, a:b32*mma_a, b:b32*mma_b, c:f32*mma_c, e:b32, f:u32/i, scaleA:b32, idA:b16*2, scaleB:b32, idB:b16*2  ; sm_120a
mma.sparse(sp::ordered_metadata).sync.aligned.shape(m16n8k64).row.col.kind(kind::mxf8f6f4).block_scale{.scale_vec(scale_vec::1X)}.dtype(f32).atype(@f864).btype(@f864).ctype(f32).stype(ue8m0)  =d:f32*mma_d, a:b32*mma_a, b:b32*mma_b, c:f32*mma_c, e:b32, f:u32/i, scaleA:b32, idA:b16*2, scaleB:b32, idB:b16*2  ; sm_120a
mma.sparse(@sp).sync.aligned.shape(m16n8k32|m16n8k64).row.col{.satfinite}.dtype(s32).atype(u8|s8).btype(u8|s8).ctype(s32)   =d:s32*mma_d, a:b32*mma_a, b:b32*mma_b, c:s32*mma_c, e:b32, f:u32/i
mma.sparse(@sp).sync.aligned.shape(m16n8k64|m16n8k128).row.col{.satfinite}.dtype(s32).atype(u4|s4).btype(u4|s4).ctype(s32)  =d:s32*mma_d, a:b32*mma_a, b:b32*mma_b, c:s32*mma_c, e:b32, f:u32/i
ldmatrix.sync.aligned.shape(m8n8).num(x1|x2|x4){.trans}{.space(@cta)}.type(b16)                =r:b32*num, [p]
ldmatrix.sync.aligned.shape(m16n16).num(x1|x2).trans{.space(@cta)}.type(b8)                    =r:b32*num, [p]  ; sm_100a
ldmatrix.sync.aligned.shape(m8n16).num(x1|x2|x4){.space(@cta)}.dtype(b8x16).stype(b6x16_p32|b4x16_p64)     =r:b32*num, [p]  ; sm_100a
ldmatrix.sync.aligned.shape(m16n16).num(x1|x2).trans{.space(@cta)}.dtype(b8x16).stype(b6x16_p32|b4x16_p64)  =r:b32*num, [p]  ; sm_100a
stmatrix.sync.aligned.shape(m8n8).num(x1|x2|x4){.trans}{.space(@cta)}.type(b16)                [=p], r:b32*num  ; sm_90
stmatrix.sync.aligned.shape(m16n8).num(x1|x2|x4).trans{.space(@cta)}.type(b8)                  [=p], r:b32*num  ; sm_100a
movmatrix.sync.aligned.shape(m8n8).trans.type(b16)                                             =d:b32, a:b32

# Asynchronous Warpgroup Level Matrix Instructions
@wk8 = m64n<8..256:8>k8
@wk16 = m64n<8..256:8>k16
@wk32 = m64n<8..256:8>k32
@wk64 = m64n<8..256:8>k64
@wi32 = m64n8k32|m64n24k32|m64n<16..256:16>k32
@wi64 = m64n8k64|m64n24k64|m64n<16..256:16>k64
@wb = m64n8k256|m64n24k256|m64n<16..256:16>k256
wgmma.mma_async.sync.aligned.shape(@wk16).dtype(@f1632).atype(f16).btype(f16)   +d*wgmma_d, aDesc:b64, bDesc:b64, scaleD:pred, scaleA:s32/i, scaleB:s32/i, transA:s32/i, transB:s32/i  ; wgmma
wgmma.mma_async.sync.aligned.shape(@wk16).dtype(@f1632).atype(f16).btype(f16)   +d*wgmma_d, a:b32*wgmma_a, bDesc:b64, scaleD:pred, scaleA:s32/i, scaleB:s32/i, transB:s32/i  ; wgmma
wgmma.mma_async.sync.aligned.shape(@wk16).dtype(f32).atype(bf16).btype(bf16)    +d*wgmma_d, aDesc:b64, bDesc:b64, scaleD:pred, scaleA:s32/i, scaleB:s32/i, transA:s32/i, transB:s32/i  ; wgmma
wgmma.mma_async.sync.aligned.shape(@wk16).dtype(f32).atype(bf16).btype(bf16)    +d*wgmma_d, a:b32*wgmma_a, bDesc:b64, scaleD:pred, scaleA:s32/i, scaleB:s32/i, transB:s32/i  ; wgmma
wgmma.mma_async.sync.aligned.shape(@wk8).dtype(f32).atype(tf32).btype(tf32)     +d*wgmma_d, aDesc:b64, bDesc:b64, scaleD:pred, scaleA:s32/i, scaleB:s32/i  ; wgmma
wgmma.mma_async.sync.aligned.shape(@wk8).dtype(f32).atype(tf32).btype(tf32)     +d*wgmma_d, a:b32*wgmma_a, bDesc:b64, scaleD:pred, scaleA:s32/i, scaleB:s32/i  ; wgmma
wgmma.mma_async.sync.aligned.shape(@wk32).dtype(@f1632).atype(@f8).btype(@f8)   +d*wgmma_d, aDesc:b64, bDesc:b64, scaleD:pred, scaleA:s32/i, scaleB:s32/i  ; wgmma
wgmma.mma_async.sync.aligned.shape(@wk32).dtype(@f1632).atype(@f8).btype(@f8)   +d*wgmma_d, a:b32*wgmma_a, bDesc:b64, scaleD:pred, scaleA:s32/i, scaleB:s32/i  ; wgmma
wgmma.mma_async.sync.aligned.shape(@wi32){.satfinite}.dtype(s32).atype(s8|u8).btype(s8|u8)  +d*wgmma_d, aDesc:b64, bDesc:b64, scaleD:pred  ; wgmma
wgmma.mma_async.sync.aligned.shape(@wi32){.satfinite}.dtype(s32).atype(s8|u8).btype(s8|u8)  +d*wgmma_d, a:b32*wgmma_a, bDesc:b64, scaleD:pred  ; wgmma
wgmma.mma_async.sync.aligned.shape(@wb).dtype(s32).atype(b1).btype(b1).op(and).popc  +d*wgmma_d, aDesc:b64, bDesc:b64, scaleD:pred  ; wgmma
wgmma.mma_async.sync.aligned.shape(@wb).dtype(s32).atype(b1).btype(b1).op(and).popc  +d*wgmma_d, a:b32*wgmma_a, bDesc:b64, scaleD:pred  ; wgmma
wgmma.mma_async.sp.sync.aligned.shape(@wk32).dtype(@f1632).atype(f16).btype(f16)  +d*wgmma_d, aDesc:b64, bDesc:b64, meta:b32, sel:s32/i, scaleD:pred, scaleA:s32/i, scaleB:s32/i, transA:s32/i, transB:s32/i  ; wgmma
wgmma.mma_async.sp.sync.aligned.shape(@wk32).dtype(@f1632).atype(f16).btype(f16)  +d*wgmma_d, a:b32*wgmma_a, bDesc:b64, meta:b32, sel:s32/i, scaleD:pred, scaleA:s32/i, scaleB:s32/i, transB:s32/i  ; wgmma
wgmma.mma_async.sp.sync.aligned.shape(@wk32).dtype(f32).atype(bf16).btype(bf16)   +d*wgmma_d, aDesc:b64, bDesc:b64, meta:b32, sel:s32/i, scaleD:pred, scaleA:s32/i, scaleB:s32/i, transA:s32/i, transB:s32/i  ; wgmma
wgmma.mma_async.sp.sync.aligned.shape(@wk32).dtype(f32).atype(bf16).btype(bf16)   +d*wgmma_d, a:b32*wgmma_a, bDesc:b64, meta:b32, sel:s32/i, scaleD:pred, scaleA:s32/i, scaleB:s32/i, transB:s32/i  ; wgmma
wgmma.mma_async.sp.sync.aligned.shape(@wk16).dtype(f32).atype(tf32).btype(tf32)   +d*wgmma_d, aDesc:b64, bDesc:b64, meta:b32, sel:s32/i, scaleD:pred, scaleA:s32/i, scaleB:s32/i  ; wgmma
wgmma.mma_async.sp.sync.aligned.shape(@wk16).dtype(f32).atype(tf32).btype(tf32)   +d*wgmma_d, a:b32*wgmma_a, bDesc:b64, meta:b32, sel:s32/i, scaleD:pred, scaleA:s32/i, scaleB:s32/i  ; wgmma
wgmma.mma_async.sp.sync.aligned.shape(@wk64).dtype(@f1632).atype(@f8).btype(@f8)  +d*wgmma_d, aDesc:b64, bDesc:b64, meta:b32, sel:s32/i, scaleD:pred, scaleA:s32/i, scaleB:s32/i  ; wgmma
wgmma.mma_async.sp.sync.aligned.shape(@wk64).dtype(@f1632).atype(@f8).btype(@f8)  +d*wgmma_d, a:b32*wgmma_a, bDesc:b64, meta:b32, sel:s32/i, scaleD:pred, scaleA:s32/i, scaleB:s32/i  ; wgmma
wgmma.mma_async.sp.sync.aligned.shape(@wi64){.satfinite}.dtype(s32).atype(s8|u8).btype(s8|u8)  +d*wgmma_d, aDesc:b64, bDesc:b64, meta:b32, sel:s32/i, scaleD:pred  ; wgmma
wgmma.mma_async.sp.sync.aligned.shape(@wi64){.satfinite}.dtype(s32).atype(s8|u8).btype(s8|u8)  +d*wgmma_d, a:b32*wgmma_a, bDesc:b64, meta:b32, sel:s32/i, scaleD:pred  ; wgmma
wgmma.fence.sync.aligned                ; wgmma
wgmma.commit_group.sync.aligned         ; wgmma
wgmma.wait_group.sync.aligned           n:u32/i  ; wgmma

# TensorCore 5th Generation Family Instructions
@fkind = kind::f16|kind::tf32|kind::f8f6f4
@mxkind = kind::mxf8f6f4|kind::mxf4|kind::mxf4nvf4
@scalevec = scale_vec::1X|scale_vec::2X|scale_vec::4X|block16|block32
@colla = collector::a::fill|collector::a::use|collector::a::lastuse|collector::a::discard
@collb = collector::b<0..3:1>::fill|collector::b<0..3:1>::use|collector::b<0..3:1>::lastuse|collector::b<0..3:1>::discard
tcgen05.mma.@group.kind(@fkind){.collector(@colla)}            [+d], aDesc:b64, bDesc:b64, idesc:b32, disable:b32*any?, enable:pred, scaleD:u32/i?  ; tcgen05
tcgen05.mma.@group.kind(@fkind){.ashift}{.collector(@colla)}   [+d], [a], bDesc:b64, idesc:b32, disable:b32*any?, enable:pred, scaleD:u32/i?  ; tcgen05
tcgen05.mma.@group.kind(kind::i8){.collector(@colla)}          [+d], aDesc:b64, bDesc:b64, idesc:b32, disable:b32*any?, enable:pred  ; tcgen05
tcgen05.mma.@group.kind(kind::i8){.ashift}{.collector(@colla)}  [+d], [a], bDesc:b64, idesc:b32, disable:b32*any?, enable:pred  ; tcgen05
tcgen05.mma.@group.kind(@mxkind).block_scale{.@scalevec}{.collector(@colla)}  [+d], aDesc:b64, bDesc:b64, idesc:b32, [scaleA], [scaleB], enable:pred  ; tcgen05
tcgen05.mma.@group.kind(@mxkind).block_scale{.@scalevec}{.collector(@colla)}  [+d], [a], bDesc:b64, idesc:b32, [scaleA], [scaleB], enable:pred  ; tcgen05
tcgen05.mma.sp.@group.kind(@fkind){.collector(@colla)}         [+d], aDesc:b64, bDesc:b64, [meta], idesc:b32, disable:b32*any?, enable:pred, scaleD:u32/i?  ; tcgen05
tcgen05.mma.sp.@group.kind(@fkind){.ashift}{.collector(@colla)}  [+d], [a], bDesc:b64, [meta], idesc:b32, disable:b32*any?, enable:pred, scaleD:u32/i?  ; tcgen05
tcgen05.mma.sp.@group.kind(kind::i8){.collector(@colla)}       [+d], aDesc:b64, bDesc:b64, [meta], idesc:b32, disable:b32*any?, enable:pred  ; tcgen05
tcgen05.mma.sp.@group.kind(kind::i8){.ashift}{.collector(@colla)}  [+d], [a], bDesc:b64, [meta], idesc:b32, disable:b32*any?, enable:pred  ; tcgen05
tcgen05.mma.sp.@group.kind(@mxkind).block_scale{.@scalevec}{.collector(@colla)}  [+d], aDesc:b64, bDesc:b64, [meta], idesc:b32, [scaleA], [scaleB], enable:pred  ; tcgen05
tcgen05.mma.sp.@group.kind(@mxkind).block_scale{.@scalevec}{.collector(@colla)}  [+d], [a], bDesc:b64, [meta], idesc:b32, [scaleA], [scaleB], enable:pred  ; tcgen05
tcgen05.mma.ws.group(cta_group::1).kind(@fkind|kind::i8){.collector(@collb)}     [+d], aDesc:b64, bDesc:b64, idesc:b32, enable:pred, zeroMask:b64?  ; tcgen05
tcgen05.mma.ws.group(cta_group::1).kind(@fkind|kind::i8){.collector(@collb)}     [+d], [a], bDesc:b64, idesc:b32, enable:pred, zeroMask:b64?  ; tcgen05
tcgen05.mma.ws.sp.group(cta_group::1).kind(@fkind|kind::i8){.collector(@collb)}  [+d], aDesc:b64, bDesc:b64, [meta], idesc:b32, enable:pred, zeroMask:b64?  ; tcgen05
tcgen05.mma.ws.sp.group(cta_group::1).kind(@fkind|kind::i8){.collector(@collb)}  [+d], [a], bDesc:b64, [meta], idesc:b32, enable:pred, zeroMask:b64?  ; tcgen05
tcgen05.fence::before_thread_sync       ; tcgen05
tcgen05.fence::after_thread_sync        ; tcgen05
tcgen05.commit.@group.completion(mbarrier::arrive::one){.space(shared::cluster)}{.multicast::cluster}.type(b64)  [+mbar], ctaMask:b16?multicast::cluster  ; tcgen05
tcgen05.alloc.@group.sync.aligned{.space(shared::cta)}.type(b32)  [=dst], nCols:u32  ; tcgen05
tcgen05.dealloc.@group.sync.aligned.type(b32)            taddr:b32, nCols:u32  ; tcgen05
tcgen05.relinquish_alloc_permit.@group.sync.aligned      ; tcgen05
@tshape = 32x32b|16x64b|16x128b|16x256b
@tnum = x1|x2|x4|x8|x16|x32|x64|x128
tcgen05.ld.sync.aligned.shape(@tshape).num(@tnum){.pack::16b}.type(b32)      =r:b32*tmem, [taddr]  ; tcgen05
tcgen05.ld.sync.aligned.shape(16x32bx2).num(@tnum){.pack::16b}.type(b32)     =r:b32*tmem, [taddr], split:u32/i  ; tcgen05
tcgen05.ld.red.sync.aligned.shape(32x32b).num(@tnum).op(min|max){.abs}{.NaN}.type(f32)    =r:type*tmem, =redval:type, [taddr]  ; tcgen05
tcgen05.ld.red.sync.aligned.shape(16x32bx2).num(@tnum).op(min|max){.abs}{.NaN}.type(f32)  =r:type*tmem, =redval:type, [taddr], split:u32/i  ; tcgen05
tcgen05.ld.red.sync.aligned.shape(32x32b).num(@tnum).op(min|max).type(u32|s32)            =r:type*tmem, =redval:type, [taddr]  ; tcgen05
tcgen05.ld.red.sync.aligned.shape(16x32bx2).num(@tnum).op(min|max).type(u32|s32)          =r:type*tmem, =redval:type, [taddr], split:u32/i  ; tcgen05
tcgen05.st.sync.aligned.shape(@tshape).num(@tnum){.unpack::16b}.type(b32)    [=taddr], r:b32*tmem  ; tcgen05
tcgen05.st.sync.aligned.shape(16x32bx2).num(@tnum){.unpack::16b}.type(b32)   [=taddr], split:u32/i, r:b32*tmem  ; tcgen05
tcgen05.wait::ld.sync.aligned           ; tcgen05
tcgen05.wait::st.sync.aligned           ; tcgen05
tcgen05.cp.@group.shape(128x256b|4x256b|128x128b){.dtype(b8x16).stype(b6x16_p32|b4x16_p64)}                           [=taddr], sDesc:b64  ; tcgen05
tcgen05.cp.@group.shape(64x128b).multicast(warpx2::02_13|warpx2::01_23){.dtype(b8x16).stype(b6x16_p32|b4x16_p64)}     [=taddr], sDesc:b64  ; tcgen05
tcgen05.cp.@group.shape(32x128b).multicast(warpx4){.dtype(b8x16).stype(b6x16_p32|b4x16_p64)}                          [=taddr], sDesc:b64  ; tcgen05
tcgen05.shift.@group.down               [+taddr]  ; tcgen05

# Stack Manipulation and Miscellaneous Instructions
stacksave.type(u32|u64)                 =d:type
stackrestore.type(u32|u64)              a:type/r
alloca.type(u32|u64)                    =ptr:type, size:type, align:u32/i?
brkpt
nanosleep.type(u32)                     t:u32
pmevent{.mask}                          a:u32/i
trap                                    ; ends
setmaxnreg.action(inc|dec).sync.aligned.type(u32)  count:u32/i  ; sm_90a
)";

const char* const rejected_rows = R"(
textures and surfaces are not supported: tex tld4 txq istypep suld sust sured suq
video instructions are not supported: vadd vsub vabsdiff vmin vmax vshl vshr vmad vset vadd2 vsub2 vavrg2 vabsdiff2 vmin2 vmax2 vset2 vadd4 vsub4 vavrg4 vabsdiff4 vmin4 vmax4 vset4
removed for sm_70 and later, use the .sync form: shfl vote
)";

}  // namespace tw::ptx
