// Streams, events, and graphs made by capturing a stream.
#include "simulators/cuda/driver/driver.h"

using namespace dlc::emu;

namespace {

template <class F>
CUresult with_stream(CUstream handle, F f) {
  return with_driver([&](Driver& d) {
    Stream* s = d.stream(handle);
    return s ? f(d, *s) : CUDA_ERROR_INVALID_HANDLE;
  });
}

template <class F>
CUresult with_event(CUevent handle, F f) {
  return with_driver([&](Driver& d) {
    Event* e = d.events.find(handle);
    return e ? f(d, *e) : CUDA_ERROR_INVALID_HANDLE;
  });
}

}  // namespace

DLC_CUDA_API CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
  if (!stream || flags > kStreamNonBlocking) return CUDA_ERROR_INVALID_VALUE;
  return with_driver([&](Driver& d) {
    Stream s;
    s.blocking = flags != kStreamNonBlocking;
    *stream = reinterpret_cast<CUstream>(d.streams.add(std::move(s)));
    return CUDA_SUCCESS;
  });
}

DLC_CUDA_API CUresult cuStreamDestroy_v2(CUstream stream) {
  return with_driver([&](Driver& d) {
    Stream* s = d.streams.find(stream);
    if (!s) return CUDA_ERROR_INVALID_HANDLE;
    const CUresult r = d.drain(*s, s->issued);
    d.events.each([&](Event& e) {
      if (e.stream == s) e.stream = nullptr;
    });
    d.streams.remove(stream);
    return r;
  });
}

DLC_CUDA_API CUresult cuStreamSynchronize(CUstream stream) {
  return with_stream(stream, [](Driver& d, Stream& s) { return d.synchronise(s); });
}

DLC_CUDA_API CUresult cuStreamQuery(CUstream stream) {
  return with_stream(stream, [](Driver&, Stream& s) {
    return s.capturing ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : s.queue.empty() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  });
}

DLC_CUDA_API CUresult cuEventCreate(CUevent* event, unsigned) {
  if (!event) return CUDA_ERROR_INVALID_VALUE;
  return with_driver([&](Driver& d) {
    *event = reinterpret_cast<CUevent>(d.events.add(Event()));
    return CUDA_SUCCESS;
  });
}

DLC_CUDA_API CUresult cuEventDestroy_v2(CUevent event) {
  return with_driver([&](Driver& d) { return d.events.remove(event) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE; });
}

DLC_CUDA_API CUresult cuEventRecord(CUevent event, CUstream stream) {
  return with_event(event, [&](Driver& d, Event& e) {
    Stream* s = d.stream(stream);
    if (!s) return CUDA_ERROR_INVALID_HANDLE;
    const CUresult r = d.put(*s, [event](Driver& then) {
      if (Event* now = then.events.find(event)) now->time = std::chrono::steady_clock::now();
      return CUDA_SUCCESS;
    });
    e.stream = s;
    e.captured = s->capturing;
    e.ticket = s->issued;
    return r;
  });
}

DLC_CUDA_API CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  return with_event(event, [&](Driver& d, Event& e) {
    Stream* s = d.stream(stream);
    if (!s) return CUDA_ERROR_INVALID_HANDLE;
    if (!e.stream || e.stream == s) return CUDA_SUCCESS;
    if (e.captured || s->capturing) return CUDA_ERROR_NOT_SUPPORTED;  // a capture of several streams
    return d.put(*s, [from = e.stream, ticket = e.ticket](Driver& then) {
      return then.streams.find(from) || from == &then.default_stream ? then.drain(*from, ticket) : CUDA_SUCCESS;
    });
  });
}

DLC_CUDA_API CUresult cuEventSynchronize(CUevent event) {
  return with_event(event, [](Driver& d, Event& e) {
    if (e.captured) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    return e.stream ? d.drain(*e.stream, e.ticket) : CUDA_SUCCESS;
  });
}

DLC_CUDA_API CUresult cuEventQuery(CUevent event) {
  return with_event(event, [](Driver&, Event& e) {
    return e.stream && e.stream->done < e.ticket ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
  });
}

DLC_CUDA_API CUresult cuEventElapsedTime_v2(float* ms, CUevent start, CUevent end) {
  if (!ms) return CUDA_ERROR_INVALID_VALUE;
  return with_driver([&](Driver& d) {
    const Event *a = d.events.find(start), *b = d.events.find(end);
    if (!a || !b || !a->stream || !b->stream) return CUDA_ERROR_INVALID_HANDLE;
    if (a->stream->done < a->ticket || b->stream->done < b->ticket) return CUDA_ERROR_NOT_READY;
    *ms = std::chrono::duration<float, std::milli>(b->time - a->time).count();
    return CUDA_SUCCESS;
  });
}

DLC_CUDA_API CUresult cuEventElapsedTime(float* ms, CUevent start, CUevent end) {
  return cuEventElapsedTime_v2(ms, start, end);
}

DLC_CUDA_API CUresult cuStreamBeginCapture_v2(CUstream stream, int) {
  return with_driver([&](Driver& d) {
    Stream* s = d.streams.find(stream);  // the default stream cannot be captured
    if (!s) return stream ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (s->capturing) return CUDA_ERROR_ILLEGAL_STATE;
    s->capturing = true;
    return CUDA_SUCCESS;
  });
}

DLC_CUDA_API CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  if (!graph) return CUDA_ERROR_INVALID_VALUE;
  return with_stream(stream, [&](Driver& d, Stream& s) {
    if (!s.capturing) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    s.capturing = false;
    *graph = reinterpret_cast<CUgraph>(d.graphs.add({std::exchange(s.captured, {})}));
    return CUDA_SUCCESS;
  });
}

DLC_CUDA_API CUresult cuStreamIsCapturing(CUstream stream, int* status) {
  if (!status) return CUDA_ERROR_INVALID_VALUE;
  return with_stream(stream, [&](Driver&, Stream& s) {
    *status = s.capturing;
    return CUDA_SUCCESS;
  });
}

DLC_CUDA_API CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long) {
  if (!exec) return CUDA_ERROR_INVALID_VALUE;
  return with_driver([&](Driver& d) {
    const Graph* g = d.graphs.find(graph);
    if (!g) return CUDA_ERROR_INVALID_HANDLE;
    *exec = reinterpret_cast<CUgraphExec>(d.execs.add({g->works}));
    return CUDA_SUCCESS;
  });
}

DLC_CUDA_API CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  return with_stream(stream, [&](Driver& d, Stream& s) {
    const GraphExec* g = d.execs.find(exec);
    if (!g) return CUDA_ERROR_INVALID_HANDLE;
    for (const Work& w : g->works)
      if (const CUresult r = d.put(s, w)) return r;
    return CUDA_SUCCESS;
  });
}

DLC_CUDA_API CUresult cuGraphGetNodes(CUgraph graph, void**, size_t* count) {
  if (!count) return CUDA_ERROR_INVALID_VALUE;
  return with_driver([&](Driver& d) {
    const Graph* g = d.graphs.find(graph);
    if (!g) return CUDA_ERROR_INVALID_HANDLE;
    *count = g->works.size();
    return CUDA_SUCCESS;
  });
}

DLC_CUDA_API CUresult cuGraphDestroy(CUgraph graph) {
  return with_driver([&](Driver& d) { return d.graphs.remove(graph) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE; });
}

DLC_CUDA_API CUresult cuGraphExecDestroy(CUgraphExec exec) {
  return with_driver([&](Driver& d) { return d.execs.remove(exec) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE; });
}
