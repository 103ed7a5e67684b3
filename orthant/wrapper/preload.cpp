// The functions of oneDNN's C interface that liborthant_dnnl.so answers itself. Its objects stay oneDNN's own, with
// layouts that were chosen here, so that all other functions know them; only their scratchpad is hidden and their
// execution is ours.

#include "orthant/base/format.hpp"
#include "orthant/wrapper/process.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <exception>

namespace orthant::wrapper {
namespace {

/// Set while the wrapper itself calls oneDNN in this thread.
thread_local bool is_inside = false;

class Inside {
 public:
  Inside() { is_inside = true; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  ~Inside() { is_inside = false; }
};

/// oneDNN's own function of this name.
template <class Function>
Function real(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

Convolution* find(const void* handle) {
  if (is_inside) return nullptr;
  Process* process = Process::existing();
  return process ? process->handles().find(handle) : nullptr;
}

void remember(const void* handle, Convolution* convolution) {
  if (convolution) Process::instance().handles().set(handle, convolution);
}

void forget(const void* handle) {
  if (is_inside) return;
  if (Process* process = Process::existing()) process->handles().forget(handle);
}

/// A request that is ours: the operation with its layouts chosen, and attributes that ask oneDNN for no memory.
struct Ours {
  Convolution* convolution = nullptr;
  Request request;
  dnnl::primitive_attr attributes;
};

bool is_cpu(dnnl_engine_t engine) {
  dnnl_engine_kind_t kind = dnnl_any_engine;
  return dnnl_engine_get_kind(engine, &kind) == dnnl_success && kind == dnnl_cpu;
}

std::optional<Ours> take_over(const_dnnl_op_desc_t op, const_dnnl_primitive_attr_t attributes, dnnl_engine_t engine) {
  if (is_inside || !op || *static_cast<const dnnl_primitive_kind_t*>(op) != dnnl_convolution) return std::nullopt;
  const Inside inside;
  try {
    Process& process = Process::instance();
    const auto request = is_plain(attributes) && is_cpu(engine) ? read_request(op) : std::nullopt;
    Convolution* convolution = request ? process.convolution(request->problem, current_threads()) : nullptr;
    if (!convolution) {
      process.left_alone();
      return std::nullopt;
    }
    Ours ours{.convolution = convolution, .request = *request};
    ours.attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    return ours;
  } catch (const std::exception& error) {
    fmt::print(stderr, "orthant: {}; a convolution is left to oneDNN\n", error.what());
    return std::nullopt;
  }
}

const dnnl_memory_desc_t* no_memory() {
  static const dnnl_memory_desc_t none{};
  return &none;
}

bool asks_for_scratchpad(dnnl_query_t what, int index) {
  return what == dnnl_query_scratchpad_md || (what == dnnl_query_exec_arg_md && index == DNNL_ARG_SCRATCHPAD);
}

std::int64_t bytes_of(const dnnl_memory_desc_t& memory) {
  return static_cast<std::int64_t>(dnnl_memory_desc_get_size(&memory));
}

/// Programs copy what they got into memory of their own, which is new.
void prepare_reorder(const_dnnl_primitive_t primitive, int count, const dnnl_exec_arg_t* arguments) {
  if (is_inside) return;
  static const auto described = real<decltype(&dnnl_primitive_get_primitive_desc)>("dnnl_primitive_get_primitive_desc");
  static const auto query = real<decltype(&dnnl_primitive_desc_query)>("dnnl_primitive_desc_query");
  const_dnnl_primitive_desc_t description = nullptr;
  dnnl_primitive_kind_t kind = dnnl_undefined_primitive;
  if (described(primitive, &description) != dnnl_success ||
      query(description, dnnl_query_primitive_kind, 0, &kind) != dnnl_success || kind != dnnl_reorder) {
    return;
  }
  for (int i = 0; i < count; ++i) {
    const dnnl_memory_desc_t* memory = nullptr;
    void* data = nullptr;
    const bool is_known = arguments[i].arg == DNNL_ARG_TO && arguments[i].memory &&
                          dnnl_memory_get_memory_desc(arguments[i].memory, &memory) == dnnl_success &&
                          dnnl_memory_get_data_handle(arguments[i].memory, &data) == dnnl_success;
    if (is_known && data) advise_large_pages(data, bytes_of(*memory));
  }
}

/// The arguments of an execution.
Tensors tensors_of(const Problem& problem, int count, const dnnl_exec_arg_t* arguments) {
  Tensors tensors;
  for (int i = 0; i < count; ++i) {
    void* data = nullptr;
    dnnl_memory_get_data_handle(arguments[i].memory, &data);
    switch (arguments[i].arg) {
      case DNNL_ARG_SRC:
      case DNNL_ARG_DIFF_SRC: tensors.src = data; break;
      case DNNL_ARG_WEIGHTS:
      case DNNL_ARG_DIFF_WEIGHTS: tensors.weights = data; break;
      case DNNL_ARG_BIAS:
      case DNNL_ARG_DIFF_BIAS: tensors.bias = data; break;
      case DNNL_ARG_DST:
      case DNNL_ARG_DIFF_DST: tensors.dst = data; break;
      default: break;
    }
  }
  if (!problem.bias) tensors.bias = nullptr;
  return tensors;
}

dnnl_status_t execute(Convolution& convolution, int count, const dnnl_exec_arg_t* arguments) {
  const Inside inside;
  try {
    const Problem& problem = convolution.problem();
    const Tensors tensors = tensors_of(problem, count, arguments);
    if (!tensors.src || !tensors.weights || !tensors.dst || (problem.bias && !tensors.bias))
      return dnnl_invalid_arguments;
    if (problem.pass == model::Pass::forward) advise_large_pages(tensors.dst, bytes_of(problem.dst));
    if (problem.pass == model::Pass::backward_data) advise_large_pages(tensors.src, bytes_of(problem.src));
    convolution.run(tensors, current_threads());
    return dnnl_success;
  } catch (const std::bad_alloc&) {
    return dnnl_out_of_memory;
  } catch (const std::exception& error) {
    fmt::print(stderr, "orthant: a convolution failed: {}\n", error.what());
    return dnnl_runtime_error;
  }
}

/// What oneDNN makes of a description; of a convolution that is taken over, of the one that stands for it.
template <class Made, class Real>
dnnl_status_t describe(Real real, Made* made, const_dnnl_op_desc_t op, const_dnnl_primitive_attr_t attributes,
                       dnnl_engine_t engine, const_dnnl_primitive_desc_t hint) {
  if (const auto ours = take_over(op, attributes, engine)) {
    if (real(made, &ours->request.op, ours->attributes.get(), engine, hint) == dnnl_success) {
      remember(*made, ours->convolution);
      return dnnl_success;
    }
  }
  return real(made, op, attributes, engine, hint);
}

}  // namespace
}  // namespace orthant::wrapper

namespace wrapper = orthant::wrapper;

#define ORTHANT_REAL(name) static const auto real = wrapper::real<decltype(&name)>(#name)

extern "C" {

dnnl_status_t dnnl_primitive_desc_iterator_create(dnnl_primitive_desc_iterator_t* iterator, const_dnnl_op_desc_t op,
                                                  const_dnnl_primitive_attr_t attributes, dnnl_engine_t engine,
                                                  const_dnnl_primitive_desc_t hint) {
  ORTHANT_REAL(dnnl_primitive_desc_iterator_create);
  return wrapper::describe(real, iterator, op, attributes, engine, hint);
}

dnnl_primitive_desc_t dnnl_primitive_desc_iterator_fetch(const_dnnl_primitive_desc_iterator_t iterator) {
  ORTHANT_REAL(dnnl_primitive_desc_iterator_fetch);
  dnnl_primitive_desc_t fetched = real(iterator);
  if (fetched) wrapper::remember(fetched, wrapper::find(iterator));
  return fetched;
}

/// There is one implementation of ours.
dnnl_status_t dnnl_primitive_desc_iterator_next(dnnl_primitive_desc_iterator_t iterator) {
  ORTHANT_REAL(dnnl_primitive_desc_iterator_next);
  wrapper::forget(iterator);
  return real(iterator);
}

dnnl_status_t dnnl_primitive_desc_iterator_destroy(dnnl_primitive_desc_iterator_t iterator) {
  ORTHANT_REAL(dnnl_primitive_desc_iterator_destroy);
  wrapper::forget(iterator);
  return real(iterator);
}

dnnl_status_t dnnl_primitive_desc_create(dnnl_primitive_desc_t* description, const_dnnl_op_desc_t op,
                                         const_dnnl_primitive_attr_t attributes, dnnl_engine_t engine,
                                         const_dnnl_primitive_desc_t hint) {
  ORTHANT_REAL(dnnl_primitive_desc_create);
  return wrapper::describe(real, description, op, attributes, engine, hint);
}

dnnl_status_t dnnl_primitive_desc_clone(dnnl_primitive_desc_t* copy, const_dnnl_primitive_desc_t description) {
  ORTHANT_REAL(dnnl_primitive_desc_clone);
  const dnnl_status_t status = real(copy, description);
  if (status == dnnl_success) wrapper::remember(*copy, wrapper::find(description));
  return status;
}

dnnl_status_t dnnl_primitive_desc_destroy(dnnl_primitive_desc_t description) {
  ORTHANT_REAL(dnnl_primitive_desc_destroy);
  wrapper::forget(description);
  return real(description);
}

dnnl_status_t dnnl_primitive_desc_query(const_dnnl_primitive_desc_t description, dnnl_query_t what, int index,
                                        void* result) {
  ORTHANT_REAL(dnnl_primitive_desc_query);
  if (!wrapper::find(description)) return real(description, what, index, result);
  if (wrapper::asks_for_scratchpad(what, index)) {
    *static_cast<const dnnl_memory_desc_t**>(result) = wrapper::no_memory();
  } else if (what == dnnl_query_memory_consumption_s64) {
    *static_cast<dnnl_dim_t*>(result) = 0;
  } else if (what == dnnl_query_impl_info_str) {
    *static_cast<const char**>(result) = "orthant";
  } else {
    return real(description, what, index, result);
  }
  return dnnl_success;
}

const dnnl_memory_desc_t* dnnl_primitive_desc_query_md(const_dnnl_primitive_desc_t description, dnnl_query_t what,
                                                       int index) {
  ORTHANT_REAL(dnnl_primitive_desc_query_md);
  if (wrapper::asks_for_scratchpad(what, index) && wrapper::find(description)) return wrapper::no_memory();
  return real(description, what, index);
}

dnnl_status_t dnnl_primitive_create(dnnl_primitive_t* primitive, const_dnnl_primitive_desc_t description) {
  ORTHANT_REAL(dnnl_primitive_create);
  const dnnl_status_t status = real(primitive, description);
  if (status == dnnl_success) wrapper::remember(*primitive, wrapper::find(description));
  return status;
}

dnnl_status_t dnnl_primitive_get_primitive_desc(const_dnnl_primitive_t primitive,
                                                const_dnnl_primitive_desc_t* description) {
  ORTHANT_REAL(dnnl_primitive_get_primitive_desc);
  const dnnl_status_t status = real(primitive, description);
  if (status == dnnl_success) wrapper::remember(*description, wrapper::find(primitive));
  return status;
}

dnnl_status_t dnnl_primitive_destroy(dnnl_primitive_t primitive) {
  ORTHANT_REAL(dnnl_primitive_destroy);
  if (primitive && wrapper::find(primitive)) {
    // Its description goes with it.
    static const auto described =
        wrapper::real<decltype(&dnnl_primitive_get_primitive_desc)>("dnnl_primitive_get_primitive_desc");
    const_dnnl_primitive_desc_t description = nullptr;
    if (described(primitive, &description) == dnnl_success) wrapper::forget(description);
    wrapper::forget(primitive);
  }
  return real(primitive);
}

dnnl_status_t dnnl_primitive_execute(const_dnnl_primitive_t primitive, dnnl_stream_t stream, int count,
                                     const dnnl_exec_arg_t* arguments) {
  ORTHANT_REAL(dnnl_primitive_execute);
  if (wrapper::Convolution* convolution = wrapper::find(primitive))
    return wrapper::execute(*convolution, count, arguments);
  wrapper::prepare_reorder(primitive, count, arguments);
  return real(primitive, stream, count, arguments);
}

}  // extern "C"
