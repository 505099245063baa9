"""What engines, kubelets, schedulers and API servers say when something fails, as they say it."""

VLLM_KV = """\
(EngineCore pid=253) INFO 03-01 12:00:01 [gpu_worker.py:298] Available KV cache memory: 8.70 GiB
(EngineCore pid=253) ERROR 03-01 12:00:01 [core.py:866] Traceback (most recent call last):
(EngineCore pid=253) ERROR 03-01 12:00:01 [core.py:866]   File "/opt/vllm/v1/core/kv_cache_utils.py", line 731, in c
(EngineCore pid=253) ERROR 03-01 12:00:01 [core.py:866]     raise ValueError(
(EngineCore pid=253) ERROR 03-01 12:00:01 [core.py:866] ValueError: To serve at least one request with the model's max \
seq len (131072), (16.0 GiB KV cache is needed, which is larger than the available KV cache memory (8.7 GiB). Based on \
the available memory, the estimated maximum model length is 71216. Try increasing `gpu_memory_utilization` or \
decreasing `max_model_len` when initializing the engine.
(APIServer pid=1) Traceback (most recent call last):
(APIServer pid=1)   File "/usr/local/bin/vllm", line 10, in <module>
(APIServer pid=1)     sys.exit(main())
(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}
"""
VLLM_NO_BLOCKS = """\
(EngineCore pid=180) ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` \
when initializing the engine.
(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}
"""
VLLM_OOM = """\
(EngineCore pid=301) torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total \
capacity of 79.11 GiB of which 1.03 GiB is free. Including non-PyTorch memory, this process has 78.07 GiB memory in use.
(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}
"""
VLLM_IN_USE = """\
(EngineCore pid=253) ValueError: Free memory on device cuda:0 (12.18/79.11 GiB) on startup is less than desired GPU \
memory utilization (0.9, 71.2 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.
(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above.
"""
VLLM_FLAG = """\
usage: vllm serve [model_tag] [options]
vllm serve: error: unrecognized arguments: --max-tokens 5
"""
VLLM_VALUE = """\
usage: vllm serve [model_tag] [options]
vllm serve: error: argument --kv-cache-dtype: invalid choice: 'fp9' (choose from auto, bfloat16, fp8)
"""
VLLM_LENGTH = """\
(APIServer pid=1) pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig
(APIServer pid=1)   Value error, User-specified max_model_len (65536) is greater than the derived max_model_len \
(max_position_embeddings=32768.0 or model_max_length=None in model's config.json). To allow overriding this maximum, \
set the env var VLLM_ALLOW_LONG_MAX_MODEL_LEN=1.
"""
VLLM_HEADS = """\
(APIServer pid=1) ValueError: Total number of attention heads (14) must be divisible by tensor parallel size (4).
"""
VLLM_GATED = """\
(APIServer pid=1) OSError: You are trying to access a gated repo.
(APIServer pid=1) Make sure to have access to it at https://hub.example/meta-llama/Llama-3.1-8B-Instruct.
(APIServer pid=1) 401 Client Error. (Request ID: Root=1-6a4)
(APIServer pid=1) Cannot access gated repo for url https://hub.example/meta-llama/x/resolve/main/config.json.
(APIServer pid=1) Access to model meta-llama/Llama-3.1-8B-Instruct is restricted and you are not in the authorized list.
"""
HUB_ABSENT = """\
huggingface_hub.errors.RepositoryNotFoundError: 401 Client Error. (Request ID: Root=1-6a5)

Repository Not Found for url: https://hub.example/api/models/meta-llama/Llama-9.
Please make sure you specified the correct `repo_id` and `repo_type`.
If you are trying to access a private or gated repo, make sure you are authenticated and your token has the required \
permissions.
"""
HUB_403 = (
    "huggingface_hub.errors.HfHubHTTPError: 403 Forbidden: None.\nCannot access content at: https://hub.example/a\n"
)
HUB_REVISION = """\
huggingface_hub.errors.RevisionNotFoundError: 404 Client Error. (Request ID: Root=1-6a6)

Revision Not Found for url: https://hub.example/api/models/a/b/revision/0e9e39f.
"""
HUB_AWAY = """\
OSError: We couldn't connect to 'https://hub.example' to load the files, and couldn't find them in the cached files.
"""
VLLM_PATH = """\
(APIServer pid=1) ValueError: Invalid repository ID or local directory specified: '/models/llama'.
"""
VLLM_METHOD = """\
ValueError: The quantization method fp8 is not supported for the current GPU. Minimum capability: 89. Current \
capability: 80.
"""
VLLM_ARCHITECTURE = "ValueError: Model architectures ['FooForCausalLM'] are not supported for now.\n"
VLLM_REMOTE = """\
ValueError: The repository acme/m contains custom code which must be executed to correctly load the model. Please pass \
the argument `trust_remote_code=True` to allow custom code to be run.
"""
VLLM_SHM = "RuntimeError: Insufficient space in /dev/shm: 1280 MiB required\n"
NO_SPACE = "OSError: [Errno 28] No space left on device\n"
NO_GPU = "RuntimeError: No CUDA GPUs are available\n"
VLLM_UNKNOWN = """\
(EngineCore pid=9) ERROR 03-01 12:00:01 [core.py:866] ImportError: libnccl.so.2: cannot open shared object file
(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}
"""
VLLM_CORE_FAILED = """\
^^^
  File "/usr/local/lib/python3.12/dist-packages/vllm/entrypoints/launchers/api_server/entry.py", line 95, in \
build_async_engine_client_from_engine_args
    async_llm = AsyncLLM.from_vllm_config(
                ^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "/usr/local/lib/python3.12/dist-packages/vllm/v1/engine/async_llm.py", line 255, in from_vllm_config
    return cls(
           ^^^^
  File "/usr/local/lib/python3.12/dist-packages/vllm/v1/engine/async_llm.py", line 184, in __init__
    self.engine_core = EngineCoreClient.make_async_mp_client(
                       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "/usr/local/lib/python3.12/dist-packages/vllm/tracing/otel.py", line 175, in sync_wrapper
    return func(*args, **kwargs)
           ^^^^^^^^^^^^^^^^^^^^^
  File "/usr/local/lib/python3.12/dist-packages/vllm/v1/engine/core_client.py", line 167, in make_async_mp_client
    return AsyncMPClient(
           ^^^^^^^^^^^^^^
  File "/usr/local/lib/python3.12/dist-packages/vllm/tracing/otel.py", line 175, in sync_wrapper
    return func(*args, **kwargs)
           ^^^^^^^^^^^^^^^^^^^^^
  File "/usr/local/lib/python3.12/dist-packages/vllm/v1/engine/core_client.py", line 1120, in __init__
    super().__init__(
  File "/usr/local/lib/python3.12/dist-packages/vllm/v1/engine/core_client.py", line 682, in __init__
    with launch_core_engines(
  File "/usr/lib/python3.12/contextlib.py", line 144, in __exit__
    next(self.gen)
  File "/usr/local/lib/python3.12/dist-packages/vllm/v1/engine/utils.py", line 1351, in launch_core_engines
    wait_for_engine_startup(
  File "/usr/local/lib/python3.12/dist-packages/vllm/v1/engine/utils.py", line 1431, in wait_for_engine_startup
    raise RuntimeError(
RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore': 1}
/usr/lib/python3.12/multiprocessing/resource_tracker.py:254: UserWarning: resource_tracker: There appear to be \
1 leaked shared_memory objects to clean up at shutdown
  warnings.warn('resource_tracker: There appear to be %d '
"""
LLAMA_FLAG = "llama-server: --foo: refused: it is not an option of this llama-server; --help lists them\n"
LLAMA_NO_DOWNLOAD = "llama-server: --hf-repo: refused: this build downloads nothing\n"
LLAMA_VALUE = "llama-server: -c: 'abc' is not a whole number\n"
LLAMA_ABSENT = """\
0.00.025.262 I srv    load_model: loading model '/models/nothere.gguf'
0.00.025.341 E gguf_init_from_file: failed to open GGUF file '/models/nothere.gguf' (No such file or directory)
0.00.025.453 E llama_model_load: error loading model: llama_model_loader: failed to load model from /models/nothere.gguf
0.00.025.583 E srv    load_model: failed to load model, '/models/nothere.gguf'
0.00.025.972 E srv          init: exiting due to model loading error
llama-server: not started: Failed to init server, please check the input params. The lines above say why.
"""
LLAMA_CUT = """\
0.00.013.428 I srv    load_model: loading model '/models/cut.gguf'
0.00.013.558 E gguf_init_from_reader: failed to read key-value pairs
0.00.013.689 E llama_model_load: error loading model: llama_model_loader: failed to load model from /models/cut.gguf
0.00.014.336 E srv          init: exiting due to model loading error
llama-server: not started: Failed to init server, please check the input params. The lines above say why.
"""
LLAMA_MAGIC = """\
0.00.032.769 E gguf_init_from_reader: invalid magic characters: 'hell', expected 'GGUF'
0.00.032.884 E llama_model_load: error loading model: llama_model_loader: failed to load model from /models/bad.gguf
0.00.036.930 E srv          init: exiting due to model loading error
"""
LLAMA_KV = """\
0.06.650.100 E alloc_tensor_range: failed to allocate CUDA0 buffer of size 37748736000
0.06.650.537 E llama_init_from_model: failed to initialize the context: failed to allocate buffer for kv cache
0.06.660.464 E srv  llama_server: exiting due to model loading error
"""
LLAMA_CUDA = """\
0.04.100.000 E ggml_backend_cuda_buffer_type_alloc_buffer: allocating 5000.00 MiB on device 0: cudaMalloc failed: \
out of memory
0.04.100.100 E llama_model_load: error loading model: unable to allocate CUDA0 buffer
"""
LLAMA_HOST = """\
0.04.100.000 E ggml_aligned_malloc: insufficient memory (attempted to allocate 36000.00 MB)
0.04.100.100 E alloc_tensor_range: failed to allocate CPU buffer of size 37748736000
"""
LLAMA_ARCHITECTURE = """\
0.00.020.100 E llama_model_load: error loading model: unknown model architecture: 'foo'
"""
LLAMA_UNKNOWN = """\
0.00.020.000 I srv    load_model: loading model
0.00.020.100 E ggml_init: something quite new
0.00.020.200 E srv          init: exiting due to model loading error
llama-server: not started: Failed to init server, please check the input params. The lines above say why.
"""

# ---- the scheduler ---------------------------------------------------------------------------------------------------
NO_GPU_FREE = """\
0/5 nodes are available: 1 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }, 4 Insufficient \
nvidia.com/gpu. no new claims to deallocate, preemption: 0/5 nodes are available: 1 Preemption is not helpful for \
scheduling, 4 No preemption victims found for incoming pod."""
NO_MEMORY_FREE = "0/2 nodes are available: 2 Insufficient memory. preemption: 0/2 nodes are available: 2 No victims."
NO_CPU_FREE = "0/2 nodes are available: 1 Insufficient cpu, 1 Insufficient memory. preemption: not helpful."
NO_MATCH = "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector. preemption: 0/3 nodes."
TAINTED = "0/1 nodes are available: 1 node(s) had untolerated taint(s). preemption: 0/1 nodes are available."
NO_CLAIM = '0/1 nodes are available: persistentvolumeclaim "models" not found. not found'
UNBOUND = "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found"
OTHER_ZONE = "0/2 nodes are available: 2 node(s) had volume node affinity conflict. preemption: 0/2 nodes."
SPREAD = "0/2 nodes are available: 2 node(s) didn't match pod topology spread constraints. preemption: 0/2."

# ---- the kubelet -----------------------------------------------------------------------------------------------------
PULL_ABSENT = """\
Back-off pulling image "docker.io/vllm/vllm-openai:v0.99.0": ErrImagePull: rpc error: code = NotFound desc = failed to \
pull and unpack image "docker.io/vllm/vllm-openai:v0.99.0": failed to resolve reference: not found"""
PULL_DENIED = """\
Back-off pulling image "registry.example/vllm:1": ErrImagePull: failed to authorize: failed to fetch oauth token: \
unexpected status: 401 Unauthorized"""
PULL_AWAY = """\
Back-off pulling image "registry.example/vllm:1": ErrImagePull: failed to do request: dial tcp: i/o timeout"""
BAD_IMAGE = 'Failed to apply default image tag "UPPER:1": couldn\'t parse image name: repository name must be lowercase'
BAD_REFERENCE = """\
failed to parse image reference "UPPER:1": invalid reference format: repository name (library/UPPER) must be \
lowercase"""
NO_SECRET = 'secret "keys" not found'
NO_CONFIG_MAP = 'configmap "settings" not found'
NO_KEY = "couldn't find key HF_TOKEN in Secret team-a/hub"
NO_PROGRAM = """\
failed to create containerd task: OCI runtime: exec: "vllm": executable file not found in $PATH: unknown"""
ALLOCATE_FAILED = """\
Allocate failed due to rpc error: code = Unknown desc = asked for 2 shared devices, more than one is unexpected"""
EVICTED = "The node was low on resource: ephemeral-storage. Threshold quantity: 10Gi, available: 9Gi."

# ---- the API server --------------------------------------------------------------------------------------------------
QUOTA = """\
pods "chat-5d9c6b7c9-{}" is forbidden: exceeded quota: gpus, requested: requests.nvidia.com/gpu=2, used: \
requests.nvidia.com/gpu=8, limited: requests.nvidia.com/gpu=8"""
QUOTA_MEMORY = """\
pods "chat-5d9c6b7c9-x" is forbidden: exceeded quota: q, requested: requests.memory=24Gi, used: requests.memory=0, \
limited: requests.memory=16Gi"""
QUOTA_UNSTATED = 'pods "chat-5d9c6b7c9-x" is forbidden: failed quota: q: must specify requests.memory for: agent,engine'
POD_SECURITY = """\
pods "chat-5d9c6b7c9-x" is forbidden: violates PodSecurity "restricted:latest": hostPath volumes (volume "data")"""
NO_ACCOUNT = """\
pods "chat-5d9c6b7c9-" is forbidden: error looking up service account t/runner: serviceaccount "runner" not found"""
NO_PRIORITY = 'pods "chat-5d9c6b7c9-" is forbidden: no PriorityClass with name urgent was found'
NO_RUNTIME = 'pods "chat-5d9c6b7c9-" is forbidden: pod rejected: RuntimeClass "nvidia" not found'
WEBHOOK = 'admission webhook "policy.example.com" denied the request: images must come from registry.example'
INVALID = 'Deployment.apps "chat" is invalid: spec.template.spec.volumes[4].csi.driver: Required value'
"""The answer to an apply."""
