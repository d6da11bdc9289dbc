"""Settings that are secret by their name, and names that only resemble those."""

import pytest

from servetop.core.text.secret_names import is_public_header, is_secret


@pytest.mark.parametrize(
    "name",
    [
        "api-key", "--api-key", "api_key", "apiKey", "APIKey", "OPENAI_API_KEY", "x-goog-api-key", "subscription-key",
        "Modal-Key", "key", "token", "hf-token", "conf-token", "X-Vault-Token", "X-Auth", "password", "DB_PASSWORD",
        "ssl-keyfile-password", "sslKeyfilePassword", "passphrase", "secret", "clientSecret", "secret_id", "credential",
        "credentials", "Authorization", "cookie", "db_pass", "MYSQL_PWD", "jwt", "access_tokens", "MYKEY", "RUNTOKEN",
    ],
)  # fmt: skip
def test_names_of_secrets(name: str) -> None:
    assert is_secret(name, "hunter22")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_tokens", 5), ("max-num-batched-tokens", "8192"), ("tokens", 300), ("tokens", [1, 2, 3]),
        ("token", 17), ("tokenizer", "llama"), ("tokenizer-mode", "auto"), ("token_ids", [1, 2]),
        ("eos_token", "</s>"), ("add_bos_token", "bool"), ("long-prefill-token-threshold", "100"),
        ("ignore_eos", True), ("api_key_env", "MY_KEY"), ("ssl-keyfile", "/etc/key.pem"),
        ("client_key", "/etc/key.pem"),
        ("password_file", "/run/secrets/x"), ("key_id", "k7"), ("num_key_value_heads", 8), ("cache_key", "abc"),
        ("token_source", "usage"), ("api-key", None), ("api-key", ""), ("require_password", False),
        ("monkey", "banana"), ("keepalive", "30"), ("author", "me"), ("PWD", "/home/me"), ("compile_pass_rate", "x"),
    ],
)  # fmt: skip
def test_names_that_only_sound_secret(name: str, value: object) -> None:
    assert not is_secret(name, value)


def test_a_headers_value_is_public_only_when_its_name_is_known_to_be() -> None:
    assert all(map(is_public_header, ("Content-Type", "accept", "USER-AGENT", "X-Request-Id")))
    assert not any(map(is_public_header, ("X-Tenant", "Authorization", "X-Forwarded-For", "")))
